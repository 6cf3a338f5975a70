import type { Semaphore } from "@galatea/base";

/**
 * Maximum number of bodies of a listener that are decompressed at once to more than `smallBytesMax`. A body of zeros decompresses to a
 * thousand times its size.
 */
export const largeInflationsMax = 4;
/** Bodies that decompress to at most this size need no slot. */
const smallBytesMax = 2 ** 20;

/** The slot of a body that is decompressed to a large size. Its owner disposes it when the decompressed bytes were decoded or freed. */
export class InflationSlot implements Disposable {
  readonly #slots: Semaphore;
  readonly #signal: AbortSignal;
  #slot: Disposable | null = null;

  constructor(slots: Semaphore, signal: AbortSignal) {
    this.#slots = slots;
    this.#signal = signal;
  }

  /** Resolves when the body may be decompressed to this size. Rejects with the signal's reason while it waits. */
  async reach(inflatedBytes: number): Promise<void> {
    if (this.#slot === null && inflatedBytes > smallBytesMax) this.#slot = await this.#slots.acquire(this.#signal);
  }

  [Symbol.dispose](): void {
    this.#slot?.[Symbol.dispose]();
  }
}
