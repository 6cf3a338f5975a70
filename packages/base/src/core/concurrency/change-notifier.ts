/** Notifies waiters of changes: `notify` resolves every pending `nextChange`; later calls wait for the next change. */
export class ChangeNotifier {
  #nextChange = Promise.withResolvers<void>();

  /** Resolves at the next `notify`. Call `nextChange` before reading the state that may change; otherwise a change in between is missed. */
  nextChange(): Promise<void> {
    return this.#nextChange.promise;
  }

  notify(): void {
    this.#nextChange.resolve();
    this.#nextChange = Promise.withResolvers<void>();
  }
}
