/** One piece of work after another, in the order in which they were asked for. A piece that fails holds none of the others up. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();
  #count = 0;

  /** Pieces under way or waiting. */
  get count(): number {
    return this.#count;
  }

  /** What `work` gives, once all that came before has ended. Where nothing does, it begins in a microtask of its own. */
  run<T>(work: () => Promise<T>): Promise<T> {
    this.#count += 1;
    const done = this.#last.then(work).finally(() => {
      this.#count -= 1;
    });
    // Whoever is next waits for the end, whichever way it ended; and so does nobody who is not told.
    this.#last = done.catch(() => {});
    return done;
  }
}
