/** The end of a scheduler: closing is asked for once or more, and is over when the last request in flight has ended. */
export class Drain {
  closing = false;
  readonly #closed = Promise.withResolvers<void>();

  close(isIdle: boolean): Promise<void> {
    this.closing = true;
    if (isIdle) this.#closed.resolve();
    return this.#closed.promise;
  }

  finish(): void {
    this.#closed.resolve();
  }
}
