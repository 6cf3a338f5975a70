import { DatabaseError } from "pg";

/**
 * The meaning of a failed query. `lost`: the session is unusable, and the outcome of a write is unknown until another session reads
 * it. `retry`: the transaction was rolled back, and a retry may succeed. `taken`: another platform writes the records. `refused`: the
 * transaction was rolled back, and a retry would fail, too.
 */
export type QueryFailure = "lost" | "retry" | "taken" | "refused";

/** The error code that `write_documents` raises if the session no longer holds the write lock. */
export const takenCode = "GA001";

/**
 * Codes of lost sessions: connection exceptions (08), shutdowns and terminated idle sessions (57P), too many connections (53300),
 * errors of the operating system (58) and of the server (XX). 25006 means that the session is connected to a standby, as during a
 * failover.
 */
const lostCodes = /^(?:08...|57P0[1-5]|25006|53300|58...|XX...)$/;
/** Codes of retryable failures: serialization failure, deadlock, lock not available, statement timeout. */
const retryCodes = /^(?:40001|40P01|55P03|57014)$/;

export function queryFailure(error: unknown): QueryFailure {
  if (!(error instanceof DatabaseError)) return "lost";
  const { code = "" } = error;
  if (code === takenCode) return "taken";
  if (lostCodes.test(code)) return "lost";
  return retryCodes.test(code) ? "retry" : "refused";
}

/** Returns `ENOSPC` if the server's disk is full; null for every other failure. */
export function serverDiskCode(error: unknown): string | null {
  return error instanceof DatabaseError && error.code === "53100" ? "ENOSPC" : null;
}

/** Returns the server's message, or a clearer text if a document's key or sort value is too long. */
export function databaseMessage(error: unknown): string {
  const { message } = error as Error;
  // Code 54000, program limit exceeded: kind, key and sort values are indexed columns.
  if (!(error instanceof DatabaseError && error.code === "54000")) return message;
  return `a document's key or its value in an order is too long for an index of PostgreSQL, which takes about 2,700 bytes: ${message}`;
}

/**
 * The error of a process that must not write the records any more: another platform has the write lock, or acknowledged commits were
 * lost.
 */
export class WriteLockLost extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WriteLockLost";
  }
}

/**
 * The error of a call during which the database could not be reached in time. `code` marks it as a storage error, which callers may
 * retry.
 */
export class DatabaseUnavailable extends Error {
  readonly code = "EDATABASE";

  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = "DatabaseUnavailable";
  }
}
