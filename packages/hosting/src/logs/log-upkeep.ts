import { delay, type Clock, type Logger } from "@galatea/base";
import type { LogStreams } from "./log-streams.ts";

/** Delay of the first run after the platform's start, which has more urgent work. */
const firstAfterMs = 60_000;
const intervalMs = 3_600_000;

/**
 * Prunes logs one minute after the call and then every hour. A failed run is logged, and the next run follows as
 * planned. Rejects when the signal aborts.
 */
export async function pruneLogsPeriodically(
  logs: Pick<LogStreams, "prune">,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
  signal: AbortSignal,
): Promise<never> {
  for (let afterMs = firstAfterMs; ; afterMs = intervalMs) {
    await delay(clock, afterMs, signal);
    try {
      await logs.prune();
    } catch (error) {
      logger.error("old log lines cannot be deleted; this is retried in an hour", { error: String(error) });
    }
  }
}
