import { invalidForest } from "../forest.ts";

/** Reads a binary file sequentially. Checks declared lengths before it allocates memory. */
export class ByteReader {
  readonly bytes: Uint8Array;
  readonly #view: DataView;
  readonly #littleEndian: boolean;
  at = 0;

  constructor(bytes: Uint8Array, { littleEndian }: { readonly littleEndian: boolean }) {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#littleEndian = littleEndian;
  }

  get left(): number {
    return this.bytes.byteLength - this.at;
  }

  /** Skips the next bytes and returns their offset. */
  take(byteLength: number): number {
    if (byteLength > this.left)
      throw invalidForest(
        "the file",
        `ends at byte ${this.bytes.byteLength}, ${byteLength} bytes were expected at ${this.at}`,
      );
    const { at } = this;
    this.at += byteLength;
    return at;
  }

  /** Skips `count` elements and returns their offset. */
  takeElements(count: number, elementBytes: number): number {
    if (!(count * elementBytes <= this.left)) {
      throw invalidForest(
        "the file",
        `ends at ${this.bytes.byteLength}, ${count} elements of ${elementBytes} bytes were expected at ${this.at}`,
      );
    }
    return this.take(count * elementBytes);
  }

  int8(): number {
    return this.#view.getInt8(this.take(1));
  }

  uint8(): number {
    return this.#view.getUint8(this.take(1));
  }

  int16(): number {
    return this.#view.getInt16(this.take(2), this.#littleEndian);
  }

  int32(): number {
    return this.#view.getInt32(this.take(4), this.#littleEndian);
  }

  uint32(): number {
    return this.#view.getUint32(this.take(4), this.#littleEndian);
  }

  /** Reads an integer as a double. Integers over 2^53 lose precision, but are never a valid count or offset. */
  int64(): number {
    return Number(this.#view.getBigInt64(this.take(8), this.#littleEndian));
  }

  uint64(): number {
    return Number(this.#view.getBigUint64(this.take(8), this.#littleEndian));
  }

  float32(): number {
    return this.#view.getFloat32(this.take(4), this.#littleEndian);
  }

  float64(): number {
    return this.#view.getFloat64(this.take(8), this.#littleEndian);
  }

  /** Reads bytes as UTF-8. */
  text(byteLength: number): string {
    const at = this.take(byteLength);
    return new TextDecoder().decode(this.bytes.subarray(at, at + byteLength));
  }
}
