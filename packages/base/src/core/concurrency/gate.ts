/** A notification of changes: `open` resolves every pending `opened`; later calls wait for the next change. */
export class Gate {
  #next = Promise.withResolvers<void>();

  /** Resolves at the next `open`. Call it before reading the state that may change; otherwise a change in between is missed. */
  opened(): Promise<void> {
    return this.#next.promise;
  }

  open(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers<void>();
  }
}
