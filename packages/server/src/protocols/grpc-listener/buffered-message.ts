import type { ByteLease } from "@galatea/base";

const firstBytes = 64 * 1024;

/**
 * The bytes of one message in a single buffer. The buffer grows with the received bytes, so that a large announced length alone allocates
 * nothing. The buffer is charged to `memory`, whose owner releases the charge.
 */
export class BufferedMessage {
  readonly #byteLengthMax: number;
  readonly #memory: ByteLease;
  #buffer = Buffer.alloc(0);
  #used = 0;

  constructor(byteLengthMax: number, memory: ByteLease) {
    this.#byteLengthMax = byteLengthMax;
    this.#memory = memory;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#used);
  }

  /** Number of bytes that are charged to the lease. */
  get heldBytes(): number {
    return this.#buffer.length;
  }

  write(chunk: Uint8Array): void {
    const needed = this.#used + chunk.length;
    if (needed > this.#buffer.length) this.#grow(needed);
    this.#buffer.set(chunk, this.#used);
    this.#used = needed;
  }

  #grow(needed: number): void {
    const length = Math.min(this.#byteLengthMax, Math.max(needed, 2 * this.#buffer.length, firstBytes));
    // During the copy, both the old and the new buffer exist.
    this.#memory.grow(length);
    const grown = Buffer.allocUnsafeSlow(length);
    this.#buffer.copy(grown, 0, 0, this.#used);
    this.#memory.shrinkBy(this.#buffer.length);
    this.#buffer = grown;
  }
}
