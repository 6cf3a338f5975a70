import { SerialQueue } from "./serial-queue.ts";

/**
 * A lock per key. Tasks with the same key run one after another; tasks with different keys run concurrently. Idle keys
 * use no memory.
 */
export class KeyedLock {
  readonly #queues = new Map<string, SerialQueue>();

  /** Number of keys with running or waiting tasks. */
  get keyCount(): number {
    return this.#queues.size;
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      queue = new SerialQueue();
      this.#queues.set(key, queue);
    }
    try {
      return await queue.run(work);
    } finally {
      if (queue.count === 0) this.#queues.delete(key);
    }
  }
}
