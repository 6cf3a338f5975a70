/**
 * A limit on concurrent holders. Further callers wait in order of arrival. The caller must bound the number of waiters.
 */
export class Semaphore {
  readonly #waiting = new Set<() => void>();
  #freeCount: number;

  constructor(slotsMax: number) {
    this.#freeCount = slotsMax;
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  /**
   * Acquires a slot. Disposing the result releases the slot; a second disposal does nothing. Rejects with the signal's
   * reason if the signal aborts before a slot is free.
   */
  async acquire(signal: AbortSignal | null): Promise<Disposable> {
    signal?.throwIfAborted();
    if (this.#freeCount > 0) this.#freeCount -= 1;
    else await this.#waitForSlot(signal);
    return this.#createHandle();
  }

  #createHandle(): Disposable {
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this.#release();
        isHeld = false;
      },
    };
  }

  #waitForSlot(signal: AbortSignal | null): Promise<void> {
    return new Promise((resolve, reject) => {
      const admit = () => {
        signal?.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = () => {
        this.#waiting.delete(admit);
        reject(signal?.reason as Error);
      };
      this.#waiting.add(admit);
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#freeCount += 1;
      return;
    }
    // The next waiter receives the slot directly, so that a later caller cannot acquire it first.
    this.#waiting.delete(next);
    next();
  }
}
