/** The shutdown of a scheduler: may be requested several times, and resolves when the last request in flight has ended. */
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
