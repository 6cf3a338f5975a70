import { createHash } from "node:crypto";
import type { ChunkChain } from "./authenticator.ts";
import { emptySha256, hmacSha256, sha256Hex, signatureEquals } from "./signature.ts";
import { SignatureFailure } from "./signed-request.ts";

export interface ChunkedBodyOptions {
  /** Verifies the signatures of every chunk and of the trailer; null: signatures are ignored. */
  readonly chain: ChunkChain | null;
  /** Receives the trailer headers, in lower case, once the body has ended. */
  readonly trailers: Map<string, string>;
}

/** An error for a body with invalid aws-chunked framing. */
export class ChunkFramingError extends Error {}

/** An error for a body with too many small chunks. */
export class ChunkSizeError extends Error {}

const lineBytesMax = 4096;
/** Minimum size of every chunk except the last, as in S3. */
const chunkBytesMin = 8192;
/**
 * Maximum number of chunks below the minimum size. S3 rejects the second one. A small chunk costs as much CPU time as a
 * large one.
 */
const smallChunksMax = 1024;
const trailerLinesMax = 32;

/**
 * Decodes `Content-Encoding: aws-chunked`. Yields the chunks' bytes as views of the input, and verifies them. Buffers
 * at most one line. Returns at the end of the source, which follows the terminating chunk and its trailers. If it
 * throws, the caller must dispose of the source.
 */
export async function* decodeAwsChunked(
  source: AsyncIterable<Buffer>,
  options: ChunkedBodyOptions,
): AsyncGenerator<Buffer> {
  const reader = new LineReader(source);
  let previous = options.chain?.seed ?? "";
  let smallCount = 0;
  for (;;) {
    const line = await reader.line();
    const match = /^([0-9a-fA-F]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?$/.exec(line);
    if (match === null) throw new ChunkFramingError("a chunk's head is malformed");
    const byteLength = Number.parseInt(match[1] ?? "", 16);
    if (byteLength < chunkBytesMin && ++smallCount > smallChunksMax) throw new ChunkSizeError("too many small chunks");
    const hash = options.chain === null ? null : createHash("sha256");
    for (let left = byteLength; left > 0;) {
      const segment = await reader.bytes(left);
      hash?.update(segment);
      left -= segment.byteLength;
      yield segment;
    }
    if (byteLength > 0 && (await reader.line()) !== "")
      throw new ChunkFramingError("a chunk is longer than its head says");
    if (options.chain !== null && hash !== null) {
      previous = verifyChunk(options.chain, previous, hash.digest("hex"), match[2] ?? "");
    }
    if (byteLength === 0) break;
  }
  await readTrailers(reader, previous, options);
  if (!(await reader.atEnd())) throw new ChunkFramingError("bytes follow the last chunk");
}

function verifyChunk(chain: ChunkChain, previous: string, hash: string, input: string): string {
  const text = ["AWS4-HMAC-SHA256-PAYLOAD", chain.timestamp, chain.scope, previous, emptySha256, hash].join("\n");
  return verified(chain, text, input);
}

function verified(chain: ChunkChain, text: string, input: string): string {
  const expected = hmacSha256(chain.key, text).toString("hex");
  if (signatureEquals(expected, input)) return expected;
  throw new SignatureFailure(
    "mismatch",
    "The chunk signature we calculated does not match the signature you provided.",
  );
}

async function readTrailers(reader: LineReader, previous: string, options: ChunkedBodyOptions): Promise<void> {
  let signed = "";
  let signature = "";
  for (let count = 0; ; count += 1) {
    const line = await reader.lineOrEnd();
    if (line === null || line === "") break;
    if (count >= trailerLinesMax) throw new ChunkFramingError("too many trailers");
    const colon = line.indexOf(":");
    if (colon < 1) throw new ChunkFramingError("a trailer is malformed");
    const name = line.slice(0, colon).toLowerCase().trim();
    const value = line.slice(colon + 1).trim();
    if (name === "x-amz-trailer-signature") signature = value;
    else {
      options.trailers.set(name, value);
      signed += `${name}:${value}\n`;
    }
  }
  if (options.chain === null || signed === "") return;
  const { timestamp, scope } = options.chain;
  const text = ["AWS4-HMAC-SHA256-TRAILER", timestamp, scope, previous, sha256Hex(signed)].join("\n");
  verified(options.chain, text, signature);
}

class LineReader {
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);
  #ended = false;

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Returns between 1 and `bytesMax` bytes, without copying. */
  async bytes(bytesMax: number): Promise<Buffer> {
    if (this.#rest.byteLength === 0) await this.#more();
    if (this.#ended) throw new ChunkFramingError("the body ended inside a chunk");
    const segment = this.#rest.subarray(0, bytesMax);
    this.#rest = this.#rest.subarray(segment.byteLength);
    return segment;
  }

  async line(): Promise<string> {
    const line = await this.lineOrEnd();
    if (line === null) throw new ChunkFramingError("the body ended before its last chunk");
    return line;
  }

  /** Returns the next line; null at the end of the source. Some clients do not send the last empty line. */
  async lineOrEnd(): Promise<string | null> {
    let from = 0;
    for (;;) {
      const at = this.#rest.indexOf("\r\n", Math.max(0, from - 1));
      if (at !== -1) {
        const line = this.#rest.toString("latin1", 0, at);
        this.#rest = this.#rest.subarray(at + 2);
        return line;
      }
      if (this.#rest.byteLength > lineBytesMax) throw new ChunkFramingError("a line of the chunked body is too long");
      from = this.#rest.byteLength;
      await this.#more();
      if (!this.#ended) continue;
      if (this.#rest.byteLength > 0) throw new ChunkFramingError("the body ended inside a line");
      return null;
    }
  }

  async atEnd(): Promise<boolean> {
    while (!this.#ended && this.#rest.byteLength === 0) await this.#more();
    return this.#rest.byteLength === 0;
  }

  async #more(): Promise<void> {
    const next = await this.#source.next();
    if (next.done === true) this.#ended = true;
    else this.#rest = this.#rest.byteLength === 0 ? next.value : Buffer.concat([this.#rest, next.value]);
  }
}
