/** The end of a scheduler: closing is asked for once or more, and is over when the last request in flight has ended. */
export class Drain {
  closing = false;
  readonly #ended = Promise.withResolvers<void>();

  get closed(): Promise<void> {
    return this.#ended.promise;
  }

  finish(): void {
    this.#ended.resolve();
  }
}
