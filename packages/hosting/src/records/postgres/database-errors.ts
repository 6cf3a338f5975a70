import { DatabaseError } from "pg";

/**
 * Meaning of a failed query. `lost`: the session is of no use any more, and the outcome of a write unknown until another
 * session reads it. `retry`: the transaction was rolled back because of its circumstances. `taken`: another platform writes
 * the records. `refused`: rolled back, and would be again.
 */
export type QueryFailure = "lost" | "retry" | "taken" | "refused";

/** The function `write_documents` raises it for a session that no longer holds the records. */
export const takenCode = "GA001";

/**
 * Connection exceptions (08), shutdowns and ended idle sessions (57P), too many connections (53300), errors of the server's
 * operating system (58) and of the server itself (XX). 25006: the session is connected to a standby, as during a failover.
 */
const lostCodes = /^(?:08...|57P0[1-5]|25006|53300|58...|XX...)$/;
/** Serialization failure, deadlock, lock not available, statement time-out. */
const retryCodes = /^(?:40001|40P01|55P03|57014)$/;

export function queryFailure(error: unknown): QueryFailure {
  if (!(error instanceof DatabaseError)) return "lost";
  const { code = "" } = error;
  if (code === takenCode) return "taken";
  if (lostCodes.test(code)) return "lost";
  return retryCodes.test(code) ? "retry" : "refused";
}

/** Returns the operating system's code for a full disk of the server; null for every other failure. */
export function serverDiskCode(error: unknown): string | null {
  return error instanceof DatabaseError && error.code === "53100" ? "ENOSPC" : null;
}

/** Returns the server's message, or what is wrong with the documents if that says it better. */
export function databaseMessage(error: unknown): string {
  const { message } = error as Error;
  // Program limit exceeded: the kind, the key and the values of orders are columns of indexes.
  if (!(error instanceof DatabaseError && error.code === "54000")) return message;
  return `a document's key or its value in an order is too long for an index of PostgreSQL, which takes about 2,700 bytes: ${message}`;
}

/** This process may not write the records any more: another platform has the lock of the writer, or acknowledged commits are lost. */
export class WriteLockLost extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WriteLockLost";
  }
}

/** The database was not reached in time. `code` makes it a storage fault, which callers may repeat. */
export class DatabaseUnavailable extends Error {
  readonly code = "EDATABASE";

  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = "DatabaseUnavailable";
  }
}
