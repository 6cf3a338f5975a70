import type { ServerResponse } from "node:http";
import { delay, waitForDrain, type Clock } from "@galatea/base";
import type { InstanceAgent } from "../instance-agent/index.ts";
import { eventHeartbeatMs, eventToLine, type EventLine } from "./agent-protocol.ts";

export interface EventStreamOptions {
  readonly agent: InstanceAgent;
  readonly clock: Clock;
  /** Sequence number of the last event that the client has received; undefined to start with the next event. */
  readonly after: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Writes events as JSON lines until the client disconnects. The agent's event log overwrites old events. A client that
 * reads too slowly gets one `lost` line instead of the overwritten events.
 */
export async function writeEventStream(
  response: ServerResponse,
  { agent, clock, after, signal }: EventStreamOptions,
): Promise<void> {
  const write = async (line: EventLine) => {
    if (!response.write(`${JSON.stringify(line)}\n`)) await waitForDrain(response, signal);
  };
  // Reading starts before the first line is written. The client reads the state after that line, so that it misses no
  // event.
  const events = agent.events({ after, signal });
  let next = events.next();
  next.catch(() => {});
  response.writeHead(200, { "content-type": "application/jsonl" });
  await write({ kind: "heartbeat", atNs: clock.monotonicNs() });
  for (;;) {
    const quiet = new AbortController();
    const heartbeat = delay(clock, eventHeartbeatMs, AbortSignal.any([quiet.signal, signal])).then(
      () => null,
      () => null,
    );
    const result = await Promise.race([next, heartbeat]);
    quiet.abort();
    signal.throwIfAborted();
    if (result === null) await write({ kind: "heartbeat", atNs: clock.monotonicNs() });
    else if (result.done === true) return;
    else {
      await write(eventToLine(result.value, clock.monotonicNs()));
      next = events.next();
      next.catch(() => {});
    }
  }
}
