import type { Semaphore } from "@galatea/base";

/**
 * Maximum number of bodies of a listener that are decompressed to more than `smallBytesMax` at the same time. A body of zeros decompresses
 * to a thousand times its size.
 */
export const largeInflationsMax = 4;
/** Bodies that decompress to at most this size need no slot. */
const smallBytesMax = 2 ** 20;

/**
 * The slot of a body that is decompressed to a large size. The owner of the slot disposes it after the decompressed bytes were decoded or
 * freed.
 */
export class InflationSlot implements Disposable {
  readonly #slots: Semaphore;
  readonly #signal: AbortSignal;
  #slot: Disposable | null = null;

  constructor(slots: Semaphore, signal: AbortSignal) {
    this.#slots = slots;
    this.#signal = signal;
  }

  /**
   * Resolves when the body may be decompressed to this size. While it waits for a slot, an abort of the signal rejects it with the signal's
   * reason.
   */
  async reach(inflatedBytes: number): Promise<void> {
    if (this.#slot === null && inflatedBytes > smallBytesMax) this.#slot = await this.#slots.acquire(this.#signal);
  }

  [Symbol.dispose](): void {
    this.#slot?.[Symbol.dispose]();
  }
}
