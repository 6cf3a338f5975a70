import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** SQLITE_BUSY: another connection holds the lock. */
const busy = 5;

/**
 * Makes `directory` the caller's alone until disposed or its process has ended, in whatever way: the lock is the kernel's, taken
 * through an empty database that stays there as `lock`. Returns null where another caller, of this process or another, has it.
 * Throws where the directory cannot be written.
 */
export function lockDirectory(directory: string): Disposable | null {
  using opening = new DisposableStack();
  try {
    const database = opening.adopt(new DatabaseSync(join(directory, "lock")), (open) => open.close());
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    const { errcode, message } = error as Error & { errcode?: number };
    if (errcode === busy) return null;
    throw new Error(`the directory ${directory} cannot be locked: ${message}`, { cause: error });
  }
  return opening.move();
}
