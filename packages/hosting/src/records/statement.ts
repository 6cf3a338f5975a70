/** What SQLite binds: BLOBs are Uint8Array, integers above 2^53 bigint. */
export type SqlValue = string | number | bigint | null | Uint8Array;

export interface Statement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** How many rows it has to change; with another number its transaction is refused. Absent: any. */
  readonly changes?: number;
}

export interface WriteResult {
  readonly changes: number;
}

/** Applied once, in the order given, each in its own transaction; the id is what the database remembers. Never edited after a release. */
export interface Migration {
  readonly id: string;
  readonly sql: string;
}

/** SQLITE_FULL and SQLITE_READONLY, by the operating system's names for what they tell of a disk. */
const diskCodes: Readonly<Record<number, string>> = { 8: "EROFS", 13: "ENOSPC" };

/** The operating system's code for what a result code of SQLite tells of the disk; null where it tells something else. */
export function diskCodeOf(sqliteCode: number): string | null {
  return diskCodes[sqliteCode & 0xff] ?? null;
}

/** A transaction that was refused (a constraint, an expectation, a bug in the statement): nothing of it was written. */
export class RecordsError extends Error {
  readonly sqliteCode: number;
  /** `ENOSPC`, `EROFS`: what it tells of the disk. */
  readonly code: string | null;
  /** Which of the statements changed another number of rows than it had to; null where that is not why. */
  readonly unexpectedAt: number | null;

  constructor(message: string, sqliteCode: number, unexpectedAt: number | null = null) {
    super(message);
    this.name = "RecordsError";
    this.sqliteCode = sqliteCode;
    this.code = diskCodeOf(sqliteCode);
    this.unexpectedAt = unexpectedAt;
  }
}
