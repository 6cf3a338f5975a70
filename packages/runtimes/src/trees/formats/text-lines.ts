import { invalidForest } from "../forest.ts";

const lineFeed = 10;
const space = 32;
/** Maximum length of a text value. Lists of numbers have no limit, because they are parsed without copying. */
const textBytesMax = 1 << 20;
const nameBytesMax = 64;
const numberBytesMax = 64;

/** Reads lines of the form `name=value`, one at a time. */
export class TextLines {
  readonly #bytes: Buffer;
  #at = 0;
  #valueAt = 0;
  #endAt = 0;
  /** Name in the current line: the whole line if it has no `=`; "" at the end of the file, or if the line has no name. */
  name = "";

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  is(name: string): boolean {
    return this.name === name;
  }

  /** Moves to the next line; returns false at the end of the file. */
  next(): boolean {
    this.name = "";
    if (this.#at >= this.#bytes.length) return false;
    const found = this.#bytes.indexOf(lineFeed, this.#at);
    const lag = found === -1 ? this.#bytes.length : found;
    const start = this.#at;
    this.#at = lag + 1;
    this.#endAt = lag > start && this.#bytes[lag - 1] === 13 ? lag - 1 : lag;
    const nameEnd = this.#bytes.subarray(start, Math.min(this.#endAt, start + nameBytesMax)).indexOf("=");
    this.#valueAt = nameEnd === -1 ? this.#endAt : start + nameEnd + 1;
    const nameBytes = nameEnd === -1 ? Math.min(this.#endAt - start, nameBytesMax) : nameEnd;
    this.name = latin1(this.#bytes, start, start + nameBytes);
    return true;
  }

  text(): string {
    if (this.#endAt - this.#valueAt > textBytesMax) throw invalidForest(`the value of '${this.name}'`, "is too long");
    return latin1(this.#bytes, this.#valueAt, this.#endAt).trim();
  }

  integer(least: number, most: number): number {
    const text = this.text();
    const value = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least && value <= most))
      throw invalidForest(`the value of '${this.name}'`, `is '${text.slice(0, 40)}', not from ${least} to ${most}`);
    return value;
  }

  /** Reads exactly `count` numbers separated by spaces. */
  numbers(count: number): Float64Array {
    // Each number takes at least two bytes, a digit and a space.
    if (count > this.#endAt - this.#valueAt) throw this.#miscounted(count);
    const values = new Float64Array(count);
    let at = this.#valueAt;
    for (let index = 0; index < count; index += 1) {
      while (at < this.#endAt && this.#bytes[at] === space) at += 1;
      const start = at;
      while (at < this.#endAt && this.#bytes[at] !== space) at += 1;
      if (at === start) throw this.#miscounted(count);
      const text = latin1(this.#bytes, start, Math.min(at, start + numberBytesMax));
      const value = numberOf(text);
      if (value === null) throw invalidForest(`the value of '${this.name}'`, `has '${text}', which is not a number`);
      values[index] = value;
    }
    while (at < this.#endAt && this.#bytes[at] === space) at += 1;
    if (at < this.#endAt) throw this.#miscounted(count);
    return values;
  }

  #miscounted(count: number): Error {
    return invalidForest(`the value of '${this.name}'`, `does not have ${count} numbers`);
  }
}

const words: Readonly<Record<string, number>> = {
  nan: Number.NaN,
  "-nan": Number.NaN,
  inf: Infinity,
  "-inf": -Infinity,
};

function numberOf(text: string): number | null {
  if (Object.hasOwn(words, text)) return words[text] as number;
  const value = Number(text);
  return Number.isNaN(value) ? null : value;
}

function latin1(bytes: Buffer, start: number, end: number): string {
  return bytes.toString("latin1", start, end);
}
