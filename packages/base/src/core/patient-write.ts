import { delay, type Clock } from "./clock.ts";
import { diskFault } from "./disk-fault.ts";
import type { Logger } from "./log.ts";

/** Between two tries: doubled each time, up to the most. */
export interface PatientPauses {
  readonly pauseMsMin: number;
  readonly pauseMsMax: number;
}

const pausesDefault: PatientPauses = { pauseMsMin: 1000, pauseMsMax: 30_000 };

export interface PatientWriteOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** As a sentence of the log begins, such as "the end of a job". */
  readonly what: string;
  /** Whose it is, for the log. */
  readonly name: string;
  /** What a disk refuses; or every error, where nobody else is left to make the write before the next start. */
  readonly outlasts: "disk faults" | "every error";
  /** From a second to half a minute unless given. */
  readonly pauses?: PatientPauses;
  readonly signal: AbortSignal;
}

/**
 * Writes what has come of something, also where the disk takes nothing for a while: what is held meanwhile the caller bounds. Rejects with
 * an error that it does not outlast, and with the signal's reason.
 */
export async function patientWrite<Result>(
  write: () => Promise<Result>,
  options: PatientWriteOptions,
): Promise<Result> {
  const { clock, logger, what, name, outlasts, pauses = pausesDefault, signal } = options;
  for (let pauseMs = pauses.pauseMsMin; ; pauseMs = Math.min(2 * pauseMs, pauses.pauseMsMax)) {
    try {
      return await write();
    } catch (error) {
      if (outlasts === "disk faults" && diskFault(error) === null) throw error;
      signal.throwIfAborted();
      logger.error(`${what} cannot be recorded; it is tried again`, { name, error: String(error), pauseMs });
    }
    await delay(clock, pauseMs, signal);
  }
}
