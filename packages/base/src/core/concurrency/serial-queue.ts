/** Runs tasks one after another, in the order of the calls. A failed task does not stop the others. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();
  #count = 0;

  /** Number of running and waiting tasks. */
  get count(): number {
    return this.#count;
  }

  /**
   * Runs `work` after all earlier tasks have settled, and returns its result. Without earlier tasks, `work` starts in a
   * microtask.
   */
  run<T>(work: () => Promise<T>): Promise<T> {
    this.#count += 1;
    const done = this.#last.then(work).finally(() => {
      this.#count -= 1;
    });
    // The next task starts when this one has settled, whether it succeeded or failed.
    this.#last = done.catch(() => {});
    return done;
  }
}
