import type { Semaphore } from "@galatea/base";

/** Bodies of a listener that are inflated to more than `smallBytesMax` at once: a body of zeros inflates to a thousand times its size. */
export const largeInflationsMax = 4;
/** Bodies that inflate to at most this size need no slot. */
const smallBytesMax = 2 ** 20;

/** A body's slot among the large ones. Its owner disposes it when the inflated bytes are decoded or freed. */
export class InflationSlot implements Disposable {
  readonly #slots: Semaphore;
  readonly #signal: AbortSignal;
  #slot: Disposable | null = null;

  constructor(slots: Semaphore, signal: AbortSignal) {
    this.#slots = slots;
    this.#signal = signal;
  }

  /** Resolves when the body may be inflated to that size. Rejects with the signal's reason while it waits. */
  async reach(inflatedBytes: number): Promise<void> {
    if (this.#slot === null && inflatedBytes > smallBytesMax) this.#slot = await this.#slots.acquire(this.#signal);
  }

  [Symbol.dispose](): void {
    this.#slot?.[Symbol.dispose]();
  }
}
