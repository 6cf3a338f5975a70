/** A limit on concurrent holders; the others wait in order of arrival. The caller bounds how many wait. */
export class Semaphore {
  readonly #waiting = new Set<() => void>();
  #freeCount: number;

  constructor(placesMax: number) {
    this.#freeCount = placesMax;
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  /** Acquires a slot, which is released when disposed (a second time does nothing). Rejects with the signal's reason while it waits. */
  async acquire(signal: AbortSignal | null): Promise<Disposable> {
    signal?.throwIfAborted();
    if (this.#freeCount > 0) this.#freeCount -= 1;
    else await this.#turn(signal);
    return this.#place();
  }

  #place(): Disposable {
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (isHeld) this.#release();
        isHeld = false;
      },
    };
  }

  #turn(signal: AbortSignal | null): Promise<void> {
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
    // The slot is handed over directly: no later caller can take it first.
    this.#waiting.delete(next);
    next();
  }
}
