import { rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** SQLITE_BUSY: another connection has locked the database. */
const busy = 5;
/** SQLITE_CORRUPT and SQLITE_NOTADB: the file is not a database, so no process can have locked it. */
const damageCodes: ReadonlySet<number> = new Set([11, 26]);

/**
 * Locks `directory` for the caller until the result is disposed or the process has ended. The lock is a kernel lock on
 * the file `lock` in the directory, which is an empty SQLite database. Returns null if another caller, in this process
 * or another, has the lock. Throws if the directory is not writable.
 */
export function lockDirectory(directory: string): Disposable | null {
  return locked(directory, "PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
}

/**
 * Acquires a shared lock, which prevents `lockDirectory` until the result is disposed or the process has ended. Any
 * number of callers may share the lock. Returns null while `lockDirectory` has the directory.
 */
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
      // The file never contains data, so removing it loses nothing.
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
