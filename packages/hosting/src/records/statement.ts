/** A value of an SQLite parameter or column. BLOBs are Uint8Array; integers above 2^53 are bigint. */
export type SqlValue = string | number | bigint | null | Uint8Array;

export interface Statement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** Number of rows that the statement must change; otherwise its transaction fails. Absent: any number. */
  readonly changes?: number;
}

export interface WriteResult {
  readonly changes: number;
}

/**
 * A migration of a database. Migrations are applied once, in the given order, each in its own transaction; the database
 * stores their ids. Never edit a migration after its release.
 */
export interface Migration {
  readonly id: string;
  readonly sql: string;
}

/** The operating system's error codes for SQLITE_READONLY and SQLITE_FULL. */
const diskCodes: Readonly<Record<number, string>> = { 8: "EROFS", 13: "ENOSPC" };

/** Returns the operating system's code if a result code of SQLite is a disk error; null otherwise. */
export function diskErrorCode(sqliteCode: number): string | null {
  return diskCodes[sqliteCode & 0xff] ?? null;
}

/**
 * The error of a rejected transaction: a constraint, an unexpected number of rows, or a bug in a statement. Nothing was
 * written.
 */
export class RecordsError extends Error {
  readonly sqliteCode: number;
  /** `ENOSPC` or `EROFS` for a disk error; null for other errors. */
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
