import type { ServerResponse } from "node:http";
import { delay, drained, type Clock } from "@galatea/base";
import type { InstanceAgent } from "../instance-agent/index.ts";
import { beatMs, eventToLine, type EventLine } from "./agent-protocol.ts";

export interface EventStreamOptions {
  readonly agent: InstanceAgent;
  readonly clock: Clock;
  /** The last event that the client knows. */
  readonly after: number | undefined;
  readonly signal: AbortSignal;
}

/** Writes events as JSON lines until the client leaves. What the client does not read stays in the agent's bounded log, and is lost there. */
export async function writeEvents(
  response: ServerResponse,
  { agent, clock, after, signal }: EventStreamOptions,
): Promise<void> {
  const write = async (line: EventLine) => {
    if (!response.write(`${JSON.stringify(line)}\n`)) await drained(response, signal);
  };
  // From here on nothing is missed: the client reads the state when it has the first line.
  const events = agent.events({ after, signal });
  let next = events.next();
  next.catch(() => {});
  response.writeHead(200, { "content-type": "application/jsonl" });
  await write({ kind: "beat", atNs: clock.monotonicNs() });
  for (;;) {
    const quiet = new AbortController();
    const beat = delay(clock, beatMs, AbortSignal.any([quiet.signal, signal])).then(
      () => null,
      () => null,
    );
    const result = await Promise.race([next, beat]);
    quiet.abort();
    signal.throwIfAborted();
    if (result === null) await write({ kind: "beat", atNs: clock.monotonicNs() });
    else if (result.done === true) return;
    else {
      await write(eventToLine(result.value, clock.monotonicNs()));
      next = events.next();
      next.catch(() => {});
    }
  }
}
