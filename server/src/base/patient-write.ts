import { delay, type Clock } from "./clock.ts";
import { diskFault } from "./disk-fault.ts";
import type { Logger } from "./log.ts";

const pauseMsMin = 1000;
const pauseMsMax = 30_000;

export interface PatientWriteOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Of what moves, for the log. */
  readonly name: string;
  readonly signal: AbortSignal;
}

/**
 * Writes what has come of a move, also where the disk takes nothing for a while: what runs stays as it is meanwhile. Rejects with what is no
 * fault of a disk, and with the signal's reason.
 */
export async function patientWrite<Result>(
  write: () => Promise<Result>,
  options: PatientWriteOptions,
): Promise<Result> {
  const { clock, logger, name, signal } = options;
  for (let pauseMs = pauseMsMin; ; pauseMs = Math.min(2 * pauseMs, pauseMsMax)) {
    try {
      return await write();
    } catch (error) {
      if (diskFault(error) === null) throw error;
      logger.error("a move cannot be recorded; it is tried again", { name, error: String(error), pauseMs });
    }
    await delay(clock, pauseMs, signal);
  }
}
