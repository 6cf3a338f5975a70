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
    let turns = this.#queues.get(key);
    if (turns === undefined) {
      turns = new SerialQueue();
      this.#queues.set(key, turns);
    }
    try {
      return await turns.run(work);
    } finally {
      if (turns.count === 0) this.#queues.delete(key);
    }
  }
}
