import { broken } from "../forest.ts";

/** Reads a binary file from its beginning on. Nothing is allocated for bytes that the file does not have. */
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

  /** Where the next bytes lie, which are stepped over. */
  take(byteLength: number): number {
    if (byteLength > this.left)
      throw broken("the file", `ends at ${this.bytes.byteLength}, ${byteLength} bytes were expected at ${this.at}`);
    const { at } = this;
    this.at += byteLength;
    return at;
  }

  /** The same for elements of one size. */
  takeElements(count: number, elementBytes: number): number {
    if (!(count * elementBytes <= this.left)) {
      throw broken(
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

  /** Integers beyond those that a double holds are none that a count or an offset can have. */
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

  /** Bytes as UTF-8. */
  text(byteLength: number): string {
    const at = this.take(byteLength);
    return new TextDecoder().decode(this.bytes.subarray(at, at + byteLength));
  }
}
