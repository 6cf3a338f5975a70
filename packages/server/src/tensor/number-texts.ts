/** Size of a slot: more than the longest printed float32, and a multiple of the size of a copied word. */
const textBytes = 24;
/** Enough slots for the 256 quotients n / 255 of a byte n. */
const slotCountLog2 = 13;
const slotCount = 2 ** slotCountLog2;

/**
 * Cache of the texts of recently printed float32 numbers. Tensors often have few distinct numbers: the pixels of a picture have 256 values
 * per channel. Copying a cached text takes a tenth of the time of printing the number (bench/rows/json-numbers.ts).
 */
export class NumberTexts {
  readonly #bits = new Int32Array(slotCount);
  /** Length of the text in each slot; 0 for an empty slot. */
  readonly #lengths = new Uint8Array(slotCount);
  readonly #texts = new DataView(new ArrayBuffer(slotCount * textBytes));
  /** Number of texts added to the cache, and of texts found in it. */
  addedCount = 0;
  foundCount = 0;

  /** Copies a cached text to `at`, and overwrites up to 24 bytes after it. Returns the length of the text, or 0 when it is not cached. */
  copy(bits: number, into: DataView, at: number): number {
    const slot = slotOf(bits);
    if (this.#bits[slot] !== bits) return 0;
    this.foundCount += 1;
    const texts = this.#texts;
    const from = slot * textBytes;
    // The copy is unrolled, because a loop takes twice the time.
    into.setInt32(at, texts.getInt32(from));
    into.setInt32(at + 4, texts.getInt32(from + 4));
    into.setInt32(at + 8, texts.getInt32(from + 8));
    into.setInt32(at + 12, texts.getInt32(from + 12));
    into.setInt32(at + 16, texts.getInt32(from + 16));
    into.setInt32(at + 20, texts.getInt32(from + 20));
    return this.#lengths[slot] as number;
  }

  /** Adds the text at `at` to the cache. At least 24 bytes from `at` must be readable. */
  add(
    bits: number,
    { from, at, length }: { readonly from: DataView; readonly at: number; readonly length: number },
  ): void {
    this.addedCount += 1;
    const slot = slotOf(bits);
    const texts = this.#texts;
    for (let offset = 0; offset < textBytes; offset += 4)
      texts.setInt32(slot * textBytes + offset, from.getInt32(at + offset));
    this.#bits[slot] = bits;
    this.#lengths[slot] = length;
  }
}

/** Returns the slot of a number. Fibonacci hashing spreads the numbers of a range over all slots. */
function slotOf(bits: number): number {
  return Math.imul(bits, 0x9e3779b1) >>> (32 - slotCountLog2);
}
