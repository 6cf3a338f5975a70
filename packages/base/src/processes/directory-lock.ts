import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** SQLITE_BUSY: another connection holds the lock. */
const busy = 5;
/** SQLITE_CORRUPT, SQLITE_NOTADB: the file is no database, so nobody can hold the lock through it. */
const damageCodes: ReadonlySet<number> = new Set([11, 26]);

/**
 * Makes `directory` the caller's alone until disposed or its process has ended, in whatever way: the lock is the kernel's, taken
 * through an empty database that stays there as `lock`. Returns null where another caller, of this process or another, has it.
 * Throws where the directory cannot be written.
 */
export function lockDirectory(directory: string): Disposable | null {
  return locked(directory, "PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
}

/** Keeps `lockDirectory` from having `directory`, as any number of callers may at once, until disposed or the process has ended; null where it has it. */
export function shareDirectory(directory: string): Disposable | null {
  return locked(directory, "PRAGMA journal_mode = MEMORY; BEGIN; SELECT count(*) FROM sqlite_schema");
}

function locked(directory: string, statements: string): Disposable | null {
  const path = join(directory, "lock");
  try {
    return lockFile(path, statements);
  } catch (error) {
    const { errcode, message } = error as Error & { errcode?: number };
    if (errcode === busy) return null;
    if (damageCodes.has(errcode ?? 0)) {
      // Nothing was ever kept in it.
      rmSync(path);
      return lockFile(path, statements);
    }
    throw new Error(`the directory ${directory} cannot be locked: ${message}`, { cause: error });
  }
}

function lockFile(path: string, statements: string): Disposable {
  using opening = new DisposableStack();
  const database = opening.adopt(new DatabaseSync(path), (open) => open.close());
  database.exec(statements);
  return opening.move();
}
