/** The shutdown of a scheduler. It may be requested several times and resolves when the last running request has ended. */
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
