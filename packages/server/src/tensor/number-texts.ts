/** More than the longest text of a float32 that is printed as a double, and a multiple of what is copied at a time. */
const textBytes = 24;
/** The 256 values n / 255 of a byte n have a slot each. */
const slotCountLog2 = 13;
const slotCount = 2 ** slotCountLog2;

/**
 * Texts of float32 numbers that were printed lately. Tensors often have few numbers many times: the pixels of a picture have 256 values for each
 * channel. To find a text takes a tenth of what it takes to print it (bench/rows/json-numbers.ts).
 */
export class NumberTexts {
  readonly #bits = new Int32Array(slotCount);
  /** 0 where a slot has none. */
  readonly #lengths = new Uint8Array(slotCount);
  readonly #texts = new DataView(new ArrayBuffer(slotCount * textBytes));
  /** How often a text was kept, and found. */
  keptCount = 0;
  foundCount = 0;

  /** Copies the text to `at`, with what is no text behind it up to 24 bytes; its length, or 0 where it is not known. */
  copy(bits: number, into: DataView, at: number): number {
    const slot = slotOf(bits);
    if (this.#bits[slot] !== bits) return 0;
    this.foundCount += 1;
    const texts = this.#texts;
    const from = slot * textBytes;
    // One line each: a loop takes twice the time.
    into.setInt32(at, texts.getInt32(from));
    into.setInt32(at + 4, texts.getInt32(from + 4));
    into.setInt32(at + 8, texts.getInt32(from + 8));
    into.setInt32(at + 12, texts.getInt32(from + 12));
    into.setInt32(at + 16, texts.getInt32(from + 16));
    into.setInt32(at + 20, texts.getInt32(from + 20));
    return this.#lengths[slot] as number;
  }

  /** Keeps the text that lies at `at`, with 24 bytes there. */
  keep(
    bits: number,
    { from, at, length }: { readonly from: DataView; readonly at: number; readonly length: number },
  ): void {
    this.keptCount += 1;
    const slot = slotOf(bits);
    const texts = this.#texts;
    for (let offset = 0; offset < textBytes; offset += 4)
      texts.setInt32(slot * textBytes + offset, from.getInt32(at + offset));
    this.#bits[slot] = bits;
    this.#lengths[slot] = length;
  }
}

/** Spreads the numbers of a range over all slots (Fibonacci hashing). */
function slotOf(bits: number): number {
  return Math.imul(bits, 0x9e3779b1) >>> (32 - slotCountLog2);
}
