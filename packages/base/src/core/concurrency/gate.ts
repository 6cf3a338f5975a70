/** Something has changed: everybody who waits looks again. Whoever comes later waits for the next change. */
export class Gate {
  #next = Promise.withResolvers<void>();

  /** Resolves at the next `open`. To be asked for before the state is looked at that the change may concern. */
  opened(): Promise<void> {
    return this.#next.promise;
  }

  open(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers<void>();
  }
}
