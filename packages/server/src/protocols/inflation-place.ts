import type { Semaphore } from "@galatea/base";

/** Bodies of a listener that are inflated to more than `smallBytesMax` at once; a small one of zeros becomes a thousand times its size. */
export const largeInflationsMax = 4;
/** Up to here a body is inflated without a place. */
const smallBytesMax = 2 ** 20;

/** One body's place among the large ones; disposed of when its inflated bytes are gone or decoded. */
export class InflationPlace implements Disposable {
  readonly #places: Semaphore;
  readonly #signal: AbortSignal;
  #place: Disposable | null = null;

  constructor(places: Semaphore, signal: AbortSignal) {
    this.#places = places;
    this.#signal = signal;
  }

  /** Resolves when the body may be inflated to so many bytes. Rejects with the signal's reason while it waits. */
  async reach(inflatedBytes: number): Promise<void> {
    if (this.#place === null && inflatedBytes > smallBytesMax) this.#place = await this.#places.acquire(this.#signal);
  }

  [Symbol.dispose](): void {
    this.#place?.[Symbol.dispose]();
  }
}
