/** A value that SQLite binds: BLOBs are Uint8Array, integers above 2^53 bigint. */
export type SqlValue = string | number | bigint | null | Uint8Array;

export interface Statement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** Number of rows that it has to change, or its transaction fails. Absent: any. */
  readonly changes?: number;
}

export interface WriteResult {
  readonly changes: number;
}

/**
 * A migration, applied once, in the given order, in a transaction of its own; the database remembers its id. Never
 * edited after a release.
 */
export interface Migration {
  readonly id: string;
  readonly sql: string;
}

/** SQLITE_FULL and SQLITE_READONLY with the operating system's names for the same faults of a disk. */
const diskCodes: Readonly<Record<number, string>> = { 8: "EROFS", 13: "ENOSPC" };

/** Returns the operating system's code for a result code of SQLite that is a fault of the disk; null for any other. */
export function diskErrorCode(sqliteCode: number): string | null {
  return diskCodes[sqliteCode & 0xff] ?? null;
}

/** A rejected transaction (a constraint, an expectation, a bug in the statement): nothing of it was written. */
export class RecordsError extends Error {
  readonly sqliteCode: number;
  /** `ENOSPC`, `EROFS`: a fault of the disk. */
  readonly code: string | null;
  /** Index of the statement that changed an unexpected number of rows; null for other reasons. */
  readonly unexpectedAt: number | null;

  constructor(message: string, sqliteCode: number, unexpectedAt: number | null = null) {
    super(message);
    this.name = "RecordsError";
    this.sqliteCode = sqliteCode;
    this.code = diskErrorCode(sqliteCode);
    this.unexpectedAt = unexpectedAt;
  }
}
