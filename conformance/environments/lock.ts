import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";

/** SQLITE_BUSY: another connection holds the lock. */
const busy = 5;

/**
 * Acquires a lock between processes of one machine. It is a kernel lock on an empty database at `path`, which stays. It
 * is released by disposal or at the end of its owner.
 */
export async function acquireLock(path: string, signal: AbortSignal): Promise<Disposable> {
  using opening = new DisposableStack();
  const database = opening.adopt(new DatabaseSync(path), (open) => open.close());
  for (;;) {
    signal.throwIfAborted();
    try {
      database.exec("BEGIN EXCLUSIVE");
      return opening.move();
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== busy) throw error;
    }
    await delay(100, undefined, { signal });
  }
}
