import type { InferenceError, YieldOptions } from "@galatea/base";
import type { JsonScanner } from "../../tensor/index.ts";
import { inChunks } from "../infer-codec/index.ts";

/** Text decoded per event loop tick: about 0.3 ms. */
export const decodeChunkBytes = 256 * 1024;

/**
 * Decodes the string at `scanner.at` from base64, one chunk per event loop tick; the scanner is then after it. The string must have been
 * checked. Rejects with `refusal()` for invalid base64, and with the signal's reason.
 */
export async function decodedBase64(
  scanner: JsonScanner,
  of: YieldOptions,
  refusal: () => InferenceError,
): Promise<Uint8Array> {
  const start = scanner.at + 1;
  scanner.skipString();
  const decoding = new Base64Decoding(scanner, { at: start, end: scanner.at - 1 }, refusal);
  await inChunks(of, () => decoding.advance());
  return decoding.content();
}

interface TextPlace {
  readonly at: number;
  readonly end: number;
}

/** Characters that encode three bytes. */
const groupLength = 4;

class Base64Decoding {
  readonly #scanner: JsonScanner;
  readonly #refusal: () => InferenceError;
  readonly #end: number;
  readonly #content: Buffer;
  #at: number;
  #length = 0;
  /** Characters of earlier chunks that do not fill a group. */
  #rest = "";

  constructor(scanner: JsonScanner, { at, end }: TextPlace, refusal: () => InferenceError) {
    this.#scanner = scanner;
    this.#refusal = refusal;
    this.#at = at;
    this.#end = end;
    this.#content = Buffer.allocUnsafeSlow(Math.ceil(((end - at) * 3) / groupLength));
  }

  /** Decodes one chunk; returns true at the end. */
  advance(): boolean {
    const text = this.#rest + this.#piece();
    const isLast = this.#at >= this.#end;
    // Padding encodes nothing, and ends the text.
    const known = isLast ? text.replace(/=+$/, "") : text;
    const count = isLast ? known.length : known.length - (known.length % groupLength);
    this.#rest = known.slice(count);
    const written = this.#content.write(known.slice(0, count), this.#length, "base64");
    // Node ignores invalid base64; Triton fails the whole load.
    if (written < Math.floor((count * 3) / groupLength)) throw this.#refusal();
    this.#length += written;
    return isLast;
  }

  content(): Uint8Array {
    return this.#content.subarray(0, this.#length);
  }

  #piece(): string {
    const { bytes } = this.#scanner;
    const until = Math.min(this.#end, this.#at + decodeChunkBytes);
    const escapeAt = bytes.subarray(this.#at, until).indexOf(0x5c);
    if (escapeAt === -1) {
      const piece = latin1(bytes.subarray(this.#at, until));
      this.#at = until;
      return piece;
    }
    return this.#unescaped(until);
  }

  /** Returns text without its escapes, up to the end of an escape. */
  #unescaped(until: number): string {
    const { bytes } = this.#scanner;
    const characters = new Uint8Array(until - this.#at);
    let count = 0;
    while (this.#at < until) {
      const byte = bytes[this.#at] as number;
      const escaped = bytes[this.#at + 1];
      const isPoint = byte === 0x5c && escaped === 0x75;
      const code = isPoint ? this.#scanner.hexUnit(this.#at, this.#at + 2) : byte === 0x5c ? (escaped as number) : byte;
      this.#at += isPoint ? 6 : byte === 0x5c ? 2 : 1;
      // Among the single-letter escapes only the slash's encodes a base64 character.
      if (code > 0x7f || (byte === 0x5c && !isPoint && code !== 0x2f)) throw this.#refusal();
      characters[count++] = code;
    }
    return latin1(characters.subarray(0, count));
  }
}

function latin1({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("latin1");
}
