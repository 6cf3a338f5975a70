import type { InferenceError, YieldOptions } from "@galatea/base";
import type { JsonScanner } from "../../tensor/index.ts";
import { inChunks } from "../infer-codec/index.ts";

/** Of text that is decoded in a turn: about 0.3 ms. */
export const decodeChunkBytes = 256 * 1024;

/**
 * What the string at `scanner.at` says as base64, a piece a turn of the event loop; the scanner ends up behind it. The string must have been
 * checked. Rejects with `refusal()` for what is no base64, and with the signal's reason.
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

/** Characters that say three bytes. */
const groupLength = 4;

class Base64Decoding {
  readonly #scanner: JsonScanner;
  readonly #refusal: () => InferenceError;
  readonly #end: number;
  readonly #content: Buffer;
  #at: number;
  #length = 0;
  /** What of the pieces before fills no group. */
  #rest = "";

  constructor(scanner: JsonScanner, { at, end }: TextPlace, refusal: () => InferenceError) {
    this.#scanner = scanner;
    this.#refusal = refusal;
    this.#at = at;
    this.#end = end;
    this.#content = Buffer.allocUnsafeSlow(Math.ceil(((end - at) * 3) / groupLength));
  }

  /** True when all is decoded. */
  advance(): boolean {
    const text = this.#rest + this.#piece();
    const isLast = this.#at >= this.#end;
    // Padding says nothing, and ends the text.
    const known = isLast ? text.replace(/=+$/, "") : text;
    const count = isLast ? known.length : known.length - (known.length % groupLength);
    this.#rest = known.slice(count);
    const written = this.#content.write(known.slice(0, count), this.#length, "base64");
    // Node drops what is no base64; Triton gives up on the whole load.
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

  /** The same of text with escapes, further by the rest of one at most. */
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
      // Of the escapes of one letter none but the slash's says a character of base64.
      if (code > 0x7f || (byte === 0x5c && !isPoint && code !== 0x2f)) throw this.#refusal();
      characters[count++] = code;
    }
    return latin1(characters.subarray(0, count));
  }
}

function latin1({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("latin1");
}
