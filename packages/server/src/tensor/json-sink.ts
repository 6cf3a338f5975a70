import { NumberTexts } from "./number-texts.ts";
import { ShortestDouble } from "./shortest-double.ts";

/** Size of a chunk. A text that fits the first chunk needs no allocation except for its copy. */
const chunkBytes = 64 * 1024;

/** Smaller doubles are subnormal, which the fast algorithm does not print. */
const normalMin = 2 ** -1022;

/** Upper bound of the bytes that are written for a double, including those after its text that ShortestDouble overwrites. */
const doubleBytesMax = 48;

const upperHex = "0123456789ABCDEF";

/**
 * Writes JSON text as bytes, in the same forms as tritonserver's JSON library. Reusable: `take` returns the text and empties the sink.
 * Results of `take` do not share memory with the sink.
 */
export class JsonSink {
  readonly #shortest = new ShortestDouble();
  readonly #scratch = Buffer.allocUnsafeSlow(chunkBytes);
  #segments: Buffer[] = [];
  #piecesBytes = 0;
  #bytes: Buffer = this.#scratch;
  #view = viewOf(this.#scratch);
  #at = 0;
  #texts: NumberTexts | null = null;

  /** Cache of printed float32 numbers. `take` does not clear it. */
  get texts(): NumberTexts {
    return (this.#texts ??= new NumberTexts());
  }

  /** Number of bytes written since the last `take`. */
  get byteLength(): number {
    return this.#piecesBytes + this.#at;
  }

  /** Ensures space for `byteLength` more bytes in the current chunk. */
  #reserve(byteLength: number): void {
    if (this.#at + byteLength <= this.#bytes.length) return;
    const written = this.#bytes.subarray(0, this.#at);
    this.#segments.push(this.#bytes === this.#scratch ? ownCopy(written) : written);
    this.#piecesBytes += this.#at;
    this.#bytes = Buffer.allocUnsafeSlow(Math.max(chunkBytes, byteLength));
    this.#view = viewOf(this.#bytes);
    this.#at = 0;
  }

  /**
   * Returns everything written and empties the sink: one latin1 string if the text fits the first chunk, otherwise chunks with their own
   * buffers.
   */
  take(): string | readonly Buffer[] {
    const text =
      this.#segments.length === 0
        ? this.#bytes.toString("latin1", 0, this.#at)
        : [...this.#segments, this.#bytes.subarray(0, this.#at)];
    this.reset();
    return text;
  }

  /** Discards everything written, after a failure in the middle of a text. */
  reset(): void {
    this.#segments = [];
    this.#piecesBytes = 0;
    if (this.#bytes !== this.#scratch) this.#view = viewOf(this.#scratch);
    this.#bytes = this.#scratch;
    this.#at = 0;
  }

  byte(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = byte;
  }

  /** Writes ASCII text without quotes. */
  ascii(text: string): void {
    const { length } = text;
    this.#reserve(length);
    const bytes = this.#bytes;
    let at = this.#at;
    for (let i = 0; i < length; i++) bytes[at++] = text.charCodeAt(i);
    this.#at = at;
  }

  /** Writes a quoted string. */
  string(text: string): void {
    const { length } = text;
    this.#reserve(length + 2);
    const bytes = this.#bytes;
    let at = this.#at;
    bytes[at++] = 0x22;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code < 0x20 || code >= 0x7f || code === 0x22 || code === 0x5c) return this.stringBytes(Buffer.from(text));
      bytes[at++] = code;
    }
    bytes[at++] = 0x22;
    this.#at = at;
  }

  /** Writes a quoted string from bytes. As in Triton, bytes that are not UTF-8 are written unchanged. */
  stringBytes(text: Uint8Array, start = 0, end = text.length): void {
    this.byte(0x22);
    this.stringPart(text, start, end);
    this.byte(0x22);
  }

  /** Writes a range of bytes as part of a string, without quotes. */
  stringPart(text: Uint8Array, start: number, end: number): void {
    for (let from = start; from < end; from += 8192) {
      const to = Math.min(end, from + 8192);
      this.#reserve((to - from) * 6);
      const bytes = this.#bytes;
      let at = this.#at;
      for (let i = from; i < to; i++) {
        const code = text[i]!;
        if (code >= 0x20 && code !== 0x22 && code !== 0x5c) {
          bytes[at++] = code;
          continue;
        }
        bytes[at++] = 0x5c;
        const letter = shortEscapes[code]!;
        if (letter !== 0) {
          bytes[at++] = letter;
          continue;
        }
        bytes[at++] = 0x75;
        bytes[at++] = 0x30;
        bytes[at++] = 0x30;
        bytes[at++] = upperHex.charCodeAt(code >> 4);
        bytes[at++] = upperHex.charCodeAt(code & 15);
      }
      this.#at = at;
    }
  }

  /** Writes an integer that a double represents exactly. */
  integer(value: number): void {
    this.#reserve(24);
    if (value >= 0 && value < 10) this.#bytes[this.#at++] = 0x30 + value;
    else if (value > -1e9 && value < 1e9) this.#smallInteger(value);
    else this.ascii(String(value));
  }

  #smallInteger(value: number): void {
    const bytes = this.#bytes;
    let rest = value | 0;
    if (rest < 0) {
      bytes[this.#at++] = 0x2d;
      rest = -rest;
    }
    let digits = 1;
    for (let bound = 10; rest >= bound; bound *= 10) digits++;
    const end = this.#at + digits;
    for (let at = end - 1; at >= this.#at; at--) {
      const tenth = (rest / 10) | 0;
      bytes[at] = 0x30 + rest - tenth * 10;
      rest = tenth;
    }
    this.#at = end;
  }

  /**
   * Writes the float32 numbers at `[from, to)`, each as a double. A comma precedes each number, except the number at offset 0. Cached texts
   * are copied. One loop for all numbers takes two thirds of the time of one call for each.
   */
  cachedFloats(view: DataView, from: number, to: number): void {
    const { texts } = this;
    let [at, into] = [this.#at, this.#view];
    for (let next = from; next < to; next += 4) {
      if (at + 1 + doubleBytesMax > into.byteLength) {
        this.#at = at;
        this.#reserve(1 + doubleBytesMax);
        at = this.#at;
        into = this.#view;
      }
      if (next > 0) into.setUint8(at++, 0x2c);
      const value = view.getFloat32(next, true);
      const isWhole = (value | 0) === value;
      const bits = view.getInt32(next, true);
      const known = isWhole ? 0 : texts.copy(bits, into, at);
      if (known !== 0) {
        at += known;
        continue;
      }
      this.#at = at;
      this.double(value);
      if (!isWhole) texts.add(bits, { from: into, at, length: this.#at - at });
      at = this.#at;
    }
    this.#at = at;
  }

  /**
   * Writes a double in a short form that reads back as the same double (see ShortestDouble): `1.0`, `0.1`, `1e21`, `1e-7`, `-0.0`, `NaN`,
   * `Infinity`. JavaScript and Triton switch to the exponent form at the same values.
   */
  double(value: number): void {
    this.#reserve(doubleBytesMax);
    const bytes = this.#bytes;
    if (value > -1e9 && value < 1e9 && (value | 0) === value && (value !== 0 || !Object.is(value, -0))) {
      if (value >= 0 && value < 10) bytes[this.#at++] = 0x30 + value;
      else this.#smallInteger(value);
      bytes[this.#at++] = 0x2e;
      bytes[this.#at++] = 0x30;
      return;
    }
    if (Object.is(value, -0)) return this.ascii("-0.0");
    if (Number.isNaN(value)) return this.ascii("NaN");
    if (value < 0) bytes[this.#at++] = 0x2d;
    const magnitude = Math.abs(value);
    if (magnitude >= normalMin && magnitude < Infinity)
      this.#at = this.#shortest.write(this.#view, this.#at, magnitude);
    else this.ascii(magnitude === Infinity ? "Infinity" : String(magnitude));
  }
}

/** Copies bytes to a separate buffer. Node's pooled buffers would share memory with other data. */
function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const shortEscapes: readonly number[] = (() => {
  const table = Array.from({ length: 256 }, () => 0);
  for (const [code, letter] of [
    [8, "b"],
    [9, "t"],
    [10, "n"],
    [12, "f"],
    [13, "r"],
    [0x22, '"'],
    [0x5c, "\\"],
  ] as const) {
    table[code] = letter.charCodeAt(0);
  }
  return table;
})();
