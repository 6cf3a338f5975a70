import type { ByteLease } from "@galatea/base";

const firstBytes = 64 * 1024;

/**
 * The bytes of a message that is needed as a whole, in one buffer that grows with the received bytes: an announced length alone takes no
 * memory. The buffer is charged to `memory`, whose owner releases it.
 */
export class GatheredMessage {
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

  /** Bytes of the lease that this buffer takes. */
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
    // Both buffers exist while the bytes are copied.
    this.#memory.grow(length);
    const grown = Buffer.allocUnsafeSlow(length);
    this.#buffer.copy(grown, 0, 0, this.#used);
    this.#memory.shrinkBy(this.#buffer.length);
    this.#buffer = grown;
  }
}
