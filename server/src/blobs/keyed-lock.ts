/** One task at a time per key, in the order they came. Holds a key only while tasks for it exist. */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<unknown>>();

  async run<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    const before = this.#tails.get(key);
    const mine = before === undefined ? task() : before.then(task);
    // The next in line waits for the end, whichever way it ended.
    const settled = mine.catch(() => undefined);
    this.#tails.set(key, settled);
    try {
      return await mine;
    } finally {
      if (this.#tails.get(key) === settled) this.#tails.delete(key);
    }
  }
}
