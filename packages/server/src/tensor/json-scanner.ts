import { InferenceError } from "@galatea/base";
import { isPlainDouble, scalePowersOf10 } from "./json-powers.ts";

/**
 * The error for invalid JSON. Texts and offsets were recorded from the parser of tritonserver 2.51 (`failed to parse the request JSON
 * buffer: <text> at <offset>`).
 */
export class JsonSyntaxError extends Error {
  readonly offset: number;

  constructor(text: string, offset: number) {
    super(`${text} at ${offset}`);
    this.name = "JsonSyntaxError";
    this.offset = offset;
  }
}

export type JsonKind = "object" | "array" | "string" | "number" | "true" | "false" | "null";

interface WalkedValue {
  readonly endAt: number;
  readonly count: number;
}

/** The kind of a number: an integer that is exact in a double, a longer integer, or a number with fraction, exponent or literal. */
export type NumberKind = "safeInteger" | "longInteger" | "double";

/** A number of this length without an exponent cannot overflow a double. */
const plainBytesMax = 300;

/** Maximum nesting depth of a document. The `data` of an input begins three levels deep and may nest 99 levels. */
export const jsonDepthMax = 102;

const kindOfByte: readonly (JsonKind | null)[] = Array.from({ length: 256 }, (_, byte) => {
  if (byte === 0x7b) return "object";
  if (byte === 0x5b) return "array";
  if (byte === 0x22) return "string";
  if (byte === 0x74) return "true";
  if (byte === 0x66) return "false";
  if (byte === 0x6e) return "null";
  if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39) || byte === 0x4e || byte === 0x49) return "number";
  return null;
});

const simpleEscapes = new Set(Array.from('"\\/bfnrt', (letter) => letter.charCodeAt(0)));

/**
 * Walks JSON text as bytes without building values: at each value, the caller queries its kind, and skips or reads it. Accepts Triton's
 * extensions of the standard: NaN, Inf, Infinity (signed too), a byte order mark, bytes that are not UTF-8, and a NUL byte as the end of
 * the document. Rejects comments and trailing commas. Nesting depth is bounded.
 */
export class JsonScanner {
  readonly bytes: Uint8Array;
  readonly end: number;
  at: number;
  /** The last number, set by `number()`. For a longInteger, or when `exact` is false, it is within 2^-50 of the true value. */
  value = 0;
  exact = true;
  /** Number of values that the scanner has visited; callers may limit it. */
  visitedCount = 0;
  #depth = 0;
  /** Ends and sizes of arrays and objects that were walked before, by their start offset. */
  #walked: Map<number, WalkedValue> | null = null;

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
    if (end - at >= 3 && bytes[at] === 0xef && bytes[at + 1] === 0xbb && bytes[at + 2] === 0xbf) this.at += 3;
  }

  fail(text: string, offset: number): never {
    throw new JsonSyntaxError(text, offset);
  }

  /** Returns the next byte that is not white space without consuming it; -1 at the end. */
  peek(): number {
    const { bytes, end } = this;
    let at = this.at;
    while (at < end) {
      const byte = bytes[at]!;
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) {
        this.at = at;
        return byte;
      }
      at++;
    }
    this.at = at;
    return -1;
  }

  /** Returns the kind of the value at the scanner's position, which stays at its first byte. */
  kind(): JsonKind {
    const byte = this.peek();
    const kind = byte === -1 ? null : kindOfByte[byte];
    return kind ?? this.fail("Invalid value.", this.at);
  }

  /**
   * Enters an object or array; returns whether it has a first member. The caller then calls `key()` (object) and reads the value, then
   * calls `more(close)`.
   */
  open(close: number): boolean {
    if (++this.#depth > jsonDepthMax) {
      throw new InferenceError("INVALID_ARG", "JSON nesting depth exceeds maximum allowed limit (100)");
    }
    this.at++;
    if (this.peek() !== close) return true;
    this.at++;
    this.#depth--;
    return false;
  }

  /** Called after a member: consumes `,` and returns true, or consumes the closing byte and returns false. */
  more(close: number): boolean {
    const byte = this.peek();
    if (byte === 0x2c) {
      this.at++;
      return true;
    }
    if (byte !== close) {
      if (close === 0x7d) this.fail("Missing a comma or '}' after an object member.", this.at);
      this.fail("Missing a comma or ']' after an array element.", this.at);
    }
    this.at++;
    this.#depth--;
    return false;
  }

  /** Skips a member's name and colon. The name without quotes is at `[result, nameEnd)`. */
  key(): number {
    if (this.peek() !== 0x22) this.fail("Missing a name for object member.", this.at);
    const start = this.at + 1;
    this.skipString();
    this.nameEnd = this.at - 1;
    if (this.peek() !== 0x3a) this.fail("Missing a colon after a name of object member.", this.at);
    this.at++;
    return start;
  }

  nameEnd = 0;

  /** Checks that only white space follows the root value. As in Triton, a NUL byte counts as the end. */
  finish(): void {
    const byte = this.peek();
    if (byte > 0) this.fail("The document root must not be followed by other values.", this.at);
  }

  /** Records the end of the array or object of `count` elements that began at `startAt`, so that the next walk skips it at once. */
  noteEnd(startAt: number, count: number): void {
    this.#walked ??= new Map();
    this.#walked.set(startAt, { endAt: this.at, count });
  }

  /**
   * Skips the array or object at the scanner's position if its end was recorded, and returns its number of elements; otherwise returns
   * null.
   */
  skipWalked(): number | null {
    const walked = this.#walked?.get(this.at);
    if (walked === undefined) return null;
    this.at = walked.endAt;
    return walked.count;
  }

  /**
   * Skips numbers of an array up to the offset `untilAt`, each with the comma and the space after it, and returns their count. Stops before
   * any element that needs `number()`: other white space, long numbers, exponents, elements that are not numbers.
   */
  skipPlainNumbers(untilAt: number): number {
    const { bytes } = this;
    const stopAt = Math.min(untilAt, this.end);
    let startAt = this.at;
    let count = 0;
    while (startAt < stopAt) {
      let at = startAt;
      let byte = bytes[at]!;
      if (byte === 0x2d) byte = bytes[++at]!;
      if (byte === 0x30) byte = bytes[++at]!;
      else if (byte > 0x30 && byte <= 0x39)
        do byte = bytes[++at]!;
        while (byte >= 0x30 && byte <= 0x39);
      else break;
      if (byte === 0x2e) {
        byte = bytes[++at]!;
        if (!(byte >= 0x30 && byte <= 0x39)) break;
        do byte = bytes[++at]!;
        while (byte >= 0x30 && byte <= 0x39);
      }
      if (byte !== 0x2c || at >= this.end || at - startAt > plainBytesMax) break;
      startAt = bytes[at + 1] === 0x20 ? at + 2 : at + 1;
      count++;
    }
    this.at = Math.min(startAt, this.end);
    return count;
  }

  skipValue(): void {
    switch (this.kind()) {
      case "string":
        return this.skipString();
      case "number":
        this.number();
        return;
      case "true":
        return this.#literal("true");
      case "false":
        return this.#literal("false");
      case "null":
        return this.#literal("null");
      case "array":
        if (this.#walked !== null && this.skipWalked() !== null) return;
        if (this.open(0x5d))
          do {
            this.skipPlainNumbers(this.end);
            this.skipValue();
          } while (this.more(0x5d));
        return;
      case "object":
        if (this.#walked !== null && this.skipWalked() !== null) return;
        if (!this.open(0x7d)) return;
        do {
          this.key();
          this.skipValue();
        } while (this.more(0x7d));
    }
  }

  #literal(word: string): void {
    for (let i = 0; i < word.length; i++) {
      if (this.at >= this.end || this.bytes[this.at] !== word.charCodeAt(i)) this.fail("Invalid value.", this.at);
      this.at++;
    }
  }

  /** Skips and checks the string at the scanner's position. */
  skipString(): void {
    const { bytes, end } = this;
    let at = this.at + 1;
    while (at < end) {
      const byte = bytes[at]!;
      if (byte === 0x22) {
        this.at = at + 1;
        return;
      }
      if (byte === 0x5c) at = this.#skipEscape(at);
      else if (byte >= 0x20) at++;
      else if (byte === 0) break;
      else this.fail("Invalid escape character in string.", at);
    }
    this.fail("Missing a closing quotation mark in string.", at);
  }

  #skipEscape(at: number): number {
    const letter = at + 1 < this.end ? this.bytes[at + 1]! : 0;
    if (simpleEscapes.has(letter)) return at + 2;
    if (letter !== 0x75) this.fail("Invalid escape character in string.", at);
    const unit = this.hexUnit(at, at + 2);
    if (unit < 0xd800 || unit > 0xdbff) return at + 6;
    if (this.bytes[at + 6] !== 0x5c || this.bytes[at + 7] !== 0x75 || at + 7 >= this.end) {
      this.fail("The surrogate pair in string is invalid.", at);
    }
    const low = this.hexUnit(at, at + 8);
    if (low < 0xdc00 || low > 0xdfff) this.fail("The surrogate pair in string is invalid.", at);
    return at + 12;
  }

  /** Reads the four hexadecimal digits at `at`. An error reports the position `escapeAt`. */
  hexUnit(escapeAt: number, at: number): number {
    let unit = 0;
    for (let i = at; i < at + 4; i++) {
      const byte = i < this.end ? this.bytes[i]! : 0;
      const digit =
        byte >= 0x30 && byte <= 0x39
          ? byte - 0x30
          : byte >= 0x41 && byte <= 0x46
            ? byte - 0x37
            : byte >= 0x61 && byte <= 0x66
              ? byte - 0x57
              : -1;
      if (digit < 0) this.fail("Incorrect hex digit after \\u escape in string.", escapeAt);
      unit = unit * 16 + digit;
    }
    return unit;
  }

  /**
   * Skips the number at the scanner's position and sets `value` and `exact`. Allocates nothing for numbers of up to 18 digits with small
   * exponents: the digits are collected in two integers, joined in a double and scaled once by an exact power of ten.
   */
  number(): NumberKind {
    const { bytes, end } = this;
    const start = this.at;
    let at = start;
    const negative = bytes[at] === 0x2d;
    if (negative) at++;
    let byte = at < end ? bytes[at]! : 0;
    if (byte === 0x4e || byte === 0x49) return this.#notFinite(at, negative);
    if (byte < 0x30 || byte > 0x39) this.fail("Invalid value.", at);
    // `high` has the first nine digits and `low` the next nine, because products of integers take a third of the time of products of
    // doubles.
    let high = 0;
    let low = 0;
    let digits = 0;
    let scale = 0;
    let integer = true;
    if (byte === 0x30) {
      // A digit after a leading zero does not belong to this number; the caller then rejects `01`.
      byte = ++at < end ? bytes[at]! : 0;
    } else {
      do {
        if (digits++ < 9) high = (Math.imul(high, 10) + byte - 0x30) | 0;
        else low = (Math.imul(low, 10) + byte - 0x30) | 0;
        byte = ++at < end ? bytes[at]! : 0;
      } while (byte >= 0x30 && byte <= 0x39);
    }
    if (byte === 0x2e) {
      integer = false;
      byte = ++at < end ? bytes[at]! : 0;
      if (byte < 0x30 || byte > 0x39) this.fail("Miss fraction part in number.", at);
      const pointAt = at;
      if (digits === 0) while (byte === 0x30) byte = ++at < end ? bytes[at]! : 0;
      while (byte >= 0x30 && byte <= 0x39) {
        if (digits++ < 9) high = (Math.imul(high, 10) + byte - 0x30) | 0;
        else low = (Math.imul(low, 10) + byte - 0x30) | 0;
        byte = ++at < end ? bytes[at]! : 0;
      }
      scale = pointAt - at;
    }
    if (byte === 0x65 || byte === 0x45) {
      integer = false;
      byte = ++at < end ? bytes[at]! : 0;
      const down = byte === 0x2d;
      if (down || byte === 0x2b) byte = ++at < end ? bytes[at]! : 0;
      if (byte < 0x30 || byte > 0x39) this.fail("Miss exponent in number.", at);
      let exponent = 0;
      do {
        if (exponent < 100_000) exponent = exponent * 10 + (byte - 0x30);
        byte = ++at < end ? bytes[at]! : 0;
      } while (byte >= 0x30 && byte <= 0x39);
      scale += down ? -exponent : exponent;
    }
    this.at = at;
    if (digits > 18 || scale > 22 || scale < -22) return this.#longNumber(start, integer);
    const mantissa = digits <= 9 ? high : high * scalePowersOf10[digits - 9]! + low;
    if (integer && digits <= 15) {
      this.value = negative ? -mantissa : mantissa;
      this.exact = true;
      return "safeInteger";
    }
    const magnitude =
      scale === 0 ? mantissa : scale < 0 ? mantissa / scalePowersOf10[-scale]! : mantissa * scalePowersOf10[scale]!;
    this.value = negative ? -magnitude : magnitude;
    this.exact = isPlainDouble(digits);
    return integer ? "longInteger" : "double";
  }

  /** Returns the correctly rounded double of the number token at `[start, this.at)`. */
  exactDouble(start: number): number {
    let text = "";
    for (let i = start; i < this.at; i++) text += String.fromCharCode(this.bytes[i]!);
    const value = Number(text);
    if (!Number.isFinite(value)) this.fail("Number too big to be stored in double.", start);
    return value;
  }

  #longNumber(start: number, integer: boolean): NumberKind {
    this.value = this.exactDouble(start);
    this.exact = true;
    return integer ? "longInteger" : "double";
  }

  #notFinite(at: number, negative: boolean): NumberKind {
    this.at = at;
    if (this.bytes[at] === 0x4e) {
      this.#literal("NaN");
      this.value = Number.NaN;
    } else {
      this.#literal("Inf");
      if (this.at < this.end && this.bytes[this.at] === 0x69) this.#literal("inity");
      this.value = negative ? -Infinity : Infinity;
    }
    this.exact = true;
    return "double";
  }
}
