import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";

/** SQLITE_BUSY: another connection holds the lock. */
const busy = 5;

/**
 * A lock between processes of one machine, released by disposing or by the end of its owner: the kernel's own, taken through an
 * empty database at `path`, which stays.
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
