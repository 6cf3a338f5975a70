import { frameLimits } from "./frame-limits.ts";
import { MalformedRecord } from "./wire.ts";

/** The value of a member of a flat JSON object. Integers keep all their digits. */
export type FlatValue = string | boolean | number | bigint;

export interface MemberBudget {
  /** Number of members that may still be read. */
  left: number;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const closingBrace = 0x7d;
const numberStart = /-?\d[\d.eE+-]*/y;

/**
 * Parses a JSON object of strings, numbers and booleans, in time linear in the length of the text, for any text. `JSON.parse` takes seconds
 * for a few megabytes of nesting, and a BigInt of millions of digits takes minutes.
 */
export function readFlatObject(text: string, budget: MemberBudget): Map<string, FlatValue> {
  const reader = new FlatReader(text);
  const members = new Map<string, FlatValue>();
  reader.expect("{");
  if (reader.skips("}")) return reader.end(members);
  for (;;) {
    if (budget.left-- <= 0) throw new MalformedRecord("JSON with too many members");
    const name = reader.text();
    reader.expect(":");
    members.set(name, reader.value());
    if (reader.skips(",")) continue;
    reader.expect("}");
    return reader.end(members);
  }
}

class FlatReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Skips the next character if it is `character`; returns whether it was. */
  skips(character: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  expect(character: string): void {
    if (!this.skips(character)) throw notFlat();
  }

  end<Result>(result: Result): Result {
    this.#skipSpace();
    if (this.#at !== this.#text.length) throw notFlat();
    return result;
  }

  text(): string {
    this.#skipSpace();
    const start = this.#at;
    if (this.#text.charCodeAt(start) !== quote) throw notFlat();
    let escapes = false;
    let at = start + 1;
    for (; at < this.#text.length; at++) {
      const code = this.#text.charCodeAt(at);
      if (code === quote) break;
      if (code !== backslash) continue;
      escapes = true;
      at++;
    }
    if (at >= this.#text.length) throw notFlat();
    this.#at = at + 1;
    if (!escapes) return this.#text.slice(start + 1, at);
    try {
      return JSON.parse(this.#text.slice(start, at + 1)) as string;
    } catch {
      throw notFlat();
    }
  }

  value(): FlatValue {
    this.#skipSpace();
    if (this.#text.charCodeAt(this.#at) === quote) return this.text();
    for (const [word, value] of [
      ["true", true],
      ["false", false],
    ] as const) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return value;
    }
    return this.#number();
  }

  #number(): FlatValue {
    // The end of the number is found first, so that a number with too many digits is not parsed.
    let end = this.#at;
    const last = Math.min(this.#text.length, this.#at + frameLimits.integerDigitsMax + 2);
    while (end < last && !isEnd(this.#text.charCodeAt(end))) end++;
    const digits = this.#text.slice(this.#at, end);
    numberStart.lastIndex = 0;
    if (numberStart.exec(digits)?.[0] !== digits || digits.length > frameLimits.integerDigitsMax + 1) throw notFlat();
    this.#at = end;
    if (/^-?\d+$/.test(digits)) return BigInt(digits);
    const value = Number(digits);
    if (!Number.isFinite(value)) throw notFlat();
    return value;
  }

  #skipSpace(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at++;
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function isEnd(code: number): boolean {
  return code === comma || code === closingBrace || isSpace(code);
}

function notFlat(): MalformedRecord {
  return new MalformedRecord("a body that is not a JSON object of strings, numbers and booleans");
}

/** Parses any JSON object within the limits of size and depth. */
export function readBoundedObject(bytes: Uint8Array): Record<string, unknown> {
  if (bytes.byteLength > frameLimits.jsonBytesMax) throw new MalformedRecord(`JSON of ${bytes.byteLength} bytes`);
  checkDepth(bytes);
  try {
    const body: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
    if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new MalformedRecord("a body that is not a JSON object");
}

/** Counts brackets in the bytes, without decoding them: in UTF-8, the byte of a bracket never occurs inside another character. */
function checkDepth(bytes: Uint8Array): void {
  let depth = 0;
  for (let at = 0; at < bytes.byteLength; at++) {
    const byte = bytes[at]!;
    if (byte === quote) {
      for (at++; at < bytes.byteLength && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++;
    } else if (byte === 0x7b || byte === 0x5b) {
      if (++depth > frameLimits.jsonDepthMax) throw new MalformedRecord("JSON nested too deeply");
    } else if (byte === closingBrace || byte === 0x5d) depth--;
  }
}
