import { SerialQueue } from "./serial-queue.ts";

/** One queue per key: work for one key runs one after another, work for different keys at once. Keeps nothing for idle keys. */
export class KeyedLock {
  readonly #turns = new Map<string, SerialQueue>();

  /** Number of keys with running or waiting work. */
  get keyCount(): number {
    return this.#turns.size;
  }

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    let turns = this.#turns.get(key);
    if (turns === undefined) {
      turns = new SerialQueue();
      this.#turns.set(key, turns);
    }
    try {
      return await turns.run(work);
    } finally {
      if (turns.count === 0) this.#turns.delete(key);
    }
  }
}
