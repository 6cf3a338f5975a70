import { delay, type Clock } from "./clock.ts";
import { diskFaultOf } from "./disk-fault.ts";
import type { Logger } from "./log.ts";

/** The pause between two attempts. It doubles after each attempt, up to `pauseMsMax`. */
export interface RetryPauses {
  readonly pauseMsMin: number;
  readonly pauseMsMax: number;
}

const pausesDefault: RetryPauses = { pauseMsMin: 1000, pauseMsMax: 30_000 };

export interface RetryWriteOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** A description of the record for log lines, such as "the end of a job". */
  readonly recordDescription: string;
  /** The name of the record's owner, for the log. */
  readonly ownerName: string;
  /**
   * The errors to retry: disk faults, or only faults of a database that cannot be reached, or every error. Use "every
   * error" if nothing else would repeat the write before the next start.
   */
  readonly retries: "disk faults" | "unreachable database" | "every error";
  /** Default: 1 s, doubled up to 30 s. */
  readonly pauses?: RetryPauses;
  readonly signal: AbortSignal;
}

/**
 * Writes a record, and retries with pauses while the disk rejects the write. The caller must bound the number of
 * records that wait. Rejects with an error that is not retried, or with the signal's reason.
 */
export async function retryWrite<Result>(write: () => Promise<Result>, options: RetryWriteOptions): Promise<Result> {
  const { clock, logger, recordDescription: what, ownerName: name, retries, pauses = pausesDefault, signal } = options;
  for (let pauseMs = pauses.pauseMsMin; ; pauseMs = Math.min(2 * pauseMs, pauses.pauseMsMax)) {
    try {
      return await write();
    } catch (error) {
      if (!isRetried(error, retries)) throw error;
      signal.throwIfAborted();
      logger.error(`${what} cannot be recorded; retrying`, { name, error: String(error), pauseMs });
    }
    await delay(clock, pauseMs, signal);
  }
}

function isRetried(error: unknown, retries: RetryWriteOptions["retries"]): boolean {
  if (retries === "every error") return true;
  const fault = diskFaultOf(error);
  return fault === "unreachable" || (retries === "disk faults" && fault !== null);
}
