import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** SQLITE_BUSY: another connection holds the lock. */
const busy = 5;

/**
 * Makes `directory` this process's alone until disposed or ended, in whatever way: the lock is the kernel's, taken through an
 * empty database. Returns null when another process has it.
 */
export function lockDirectory(directory: string): Disposable | null {
  const database = new DatabaseSync(join(directory, "lock"));
  try {
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === busy) return null;
    throw error;
  }
  return { [Symbol.dispose]: () => database.close() };
}
