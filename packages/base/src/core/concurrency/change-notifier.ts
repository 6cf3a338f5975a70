/**
 * Notifies waiters of a change. `notify` resolves every pending `nextChange`; later calls of `nextChange` wait for the
 * next change.
 */
export class ChangeNotifier {
  #nextChange = Promise.withResolvers<void>();

  /**
   * Resolves at the next `notify`. Callers must call this before they read the state that may change. Otherwise they
   * miss a change between the two.
   */
  nextChange(): Promise<void> {
    return this.#nextChange.promise;
  }

  notify(): void {
    this.#nextChange.resolve();
    this.#nextChange = Promise.withResolvers<void>();
  }
}
