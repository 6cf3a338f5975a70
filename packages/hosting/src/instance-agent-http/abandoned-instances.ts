import { delay, rejectOnAbort, type Clock, type Logger } from "@galatea/base";
import type { LocalInstanceAgent } from "../instance-agent/index.ts";
import type { AgentServer } from "./agent-server.ts";

export interface AbandonedInstancesOptions {
  readonly agent: Pick<LocalInstanceAgent, "reservedBytes" | "endAll">;
  readonly server: Pick<AgentServer, "isFollowed" | "followersChanged">;
  /**
   * Maximum time without a client that reads the agent's events, in milliseconds. After it, the agent's instances are
   * stopped.
   */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Stops the agent's instances whenever no platform has read the agent's events for `graceMs`. A platform that does not
 * reconnect has moved its endpoints to other agents or no longer exists. Runs until it rejects with the signal's
 * reason.
 */
export async function endAbandonedInstances(options: AbandonedInstancesOptions, signal: AbortSignal): Promise<never> {
  const { agent, server, graceMs, clock, logger } = options;
  for (;;) {
    const changed = server.followersChanged();
    if (!server.isFollowed && (await passes(clock, graceMs, { unless: changed, signal })) && !server.isFollowed) {
      if (agent.reservedBytes > 0) logger.warning("the platform has not returned: its instances end", { graceMs });
      await agent.endAll();
    }
    await rejectOnAbort(changed, signal);
  }
}

/** Resolves with true after `ms`, or with false if `unless` resolves earlier. */
async function passes(
  clock: Clock,
  ms: number,
  { unless, signal }: { readonly unless: Promise<void>; readonly signal: AbortSignal },
): Promise<boolean> {
  const changed = new AbortController();
  const wait = delay(clock, ms, AbortSignal.any([signal, changed.signal])).then(() => true);
  try {
    return await Promise.race([wait, unless.then(() => false)]);
  } finally {
    changed.abort();
    wait.catch(() => {});
  }
}
