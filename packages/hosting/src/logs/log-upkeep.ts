import { delay, type Clock, type Logger } from "@galatea/base";
import type { LogStreams } from "./log-streams.ts";

/** Delay after the start, which has more urgent work. */
const firstAfterMs = 60_000;
const intervalMs = 3_600_000;

/**
 * Prunes logs soon after a start and every hour from then on; a failed run is logged and does not end it. Rejects when
 * the signal aborts.
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
