import type { InferenceError, YieldOptions } from "@galatea/base";
import type { JsonScanner } from "../../tensor/index.ts";
import { runInChunks } from "../infer-codec/index.ts";

/** Size of the text that is decoded in one event loop tick, which takes about 0.3 ms. */
export const decodeChunkBytes = 256 * 1024;

/**
 * Decodes the base64 string at `scanner.at`, one chunk in each event loop tick, and moves the scanner past it. The JSON must have been
 * checked. Rejects with `refusal()` for invalid base64, and with the signal's reason if the signal aborts.
 */
export async function decodedBase64(
  scanner: JsonScanner,
  of: YieldOptions,
  refusal: () => InferenceError,
): Promise<Uint8Array> {
  const start = scanner.at + 1;
  scanner.skipString();
  const decoding = new Base64Decoding(scanner, { at: start, end: scanner.at - 1 }, refusal);
  await runInChunks(of, () => decoding.advance());
  return decoding.content();
}

interface TextLocation {
  readonly at: number;
  readonly end: number;
}

/** Number of characters that encode three bytes. */
const groupLength = 4;

class Base64Decoding {
  readonly #scanner: JsonScanner;
  readonly #refusal: () => InferenceError;
  readonly #end: number;
  readonly #content: Buffer;
  #at: number;
  #length = 0;
  /** Characters of earlier chunks that do not fill a group of four. */
  #rest = "";

  constructor(scanner: JsonScanner, { at, end }: TextLocation, refusal: () => InferenceError) {
    this.#scanner = scanner;
    this.#refusal = refusal;
    this.#at = at;
    this.#end = end;
    this.#content = Buffer.allocUnsafeSlow(Math.ceil(((end - at) * 3) / groupLength));
  }

  /** Decodes one chunk; returns true at the end of the text. */
  advance(): boolean {
    const text = this.#rest + this.#segment();
    const isLast = this.#at >= this.#end;
    // Padding encodes no data, and is only valid at the end.
    const known = isLast ? text.replace(/=+$/, "") : text;
    const count = isLast ? known.length : known.length - (known.length % groupLength);
    this.#rest = known.slice(count);
    const written = this.#content.write(known.slice(0, count), this.#length, "base64");
    // Node ignores invalid characters. As in Triton, they make the whole load fail.
    if (written < Math.floor((count * 3) / groupLength)) throw this.#refusal();
    this.#length += written;
    return isLast;
  }

  content(): Uint8Array {
    return this.#content.subarray(0, this.#length);
  }

  #segment(): string {
    const { bytes } = this.#scanner;
    const until = Math.min(this.#end, this.#at + decodeChunkBytes);
    const escapeAt = bytes.subarray(this.#at, until).indexOf(0x5c);
    if (escapeAt === -1) {
      const segment = latin1(bytes.subarray(this.#at, until));
      this.#at = until;
      return segment;
    }
    return this.#unescaped(until);
  }

  /** Returns a part of the text with decoded escapes. The part does not end within an escape. */
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
      // Rejects all single-letter escapes except `\/`, because no other one encodes a base64 character.
      if (code > 0x7f || (byte === 0x5c && !isPoint && code !== 0x2f)) throw this.#refusal();
      characters[count++] = code;
    }
    return latin1(characters.subarray(0, count));
  }
}

function latin1({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("latin1");
}
