import { webcrypto } from "node:crypto";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import { readToBuffer, type Logger } from "@galatea/base";
import { nullIfAbsent, type BucketStore, type ListPage } from "../../objects/index.ts";
import type { ChunkRecord } from "./log-records.ts";

export interface ChunkObjectsOptions {
  readonly store: BucketStore;
  readonly bucket: string;
  readonly logger: Logger;
  /** Maximum bytes of the lines of one chunk. */
  readonly chunkBytesMax: number;
  /** Maximum bytes of chunks that stay in memory for the next page. */
  readonly cacheBytesMax: number;
}

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);
const objectsPerList = 1000;

/** Segments in the object store, compressed with zstd. The bucket is created by the first put. */
export class ChunkObjects {
  readonly #options: ChunkObjectsOptions;
  readonly #never = new AbortController().signal;
  /** Sealed chunks by key, the least recently used one first. */
  readonly #cached = new Map<string, Buffer>();
  #cachedBytes = 0;
  #hasBucket = false;

  constructor(options: ChunkObjectsOptions) {
    this.#options = options;
  }

  /** Replaces the object of a segment. The previous content must be a prefix of the new one. */
  async put(key: string, lines: Buffer): Promise<void> {
    const { store, bucket } = this.#options;
    if (!this.#hasBucket && (await nullIfAbsent(store.headBucket(bucket))) === null) await store.createBucket(bucket);
    this.#hasBucket = true;
    const compressed = await compress(lines);
    await store.put(bucket, key, Readable.from([compressed], { objectMode: false }), {
      contentType: "application/zstd",
      signal: this.#never,
    });
  }

  /**
   * Reads the lines of a segment. Resolves with null if the object is missing or damaged, which is logged. The object of
   * a record without lines may not be stored yet.
   */
  async get(key: string, chunk: ChunkRecord | null): Promise<Buffer | null> {
    const cached = this.#cached.get(key);
    if (cached !== undefined) {
      this.#cached.delete(key);
      this.#cached.set(key, cached);
      return cached;
    }
    const { store, bucket, chunkBytesMax, logger } = this.#options;
    const found = await nullIfAbsent(store.get(bucket, key));
    if (found === null) {
      if (chunk !== null && chunk.bytes > 0)
        logger.error("a chunk of log lines is missing; readers skip it", { bucket, key });
      return null;
    }
    const tooLong = () => new Error(`the object has more than ${chunkBytesMax} bytes`);
    const compressed = await readToBuffer(found.body, chunkBytesMax, tooLong);
    try {
      const lines = await decompress(compressed, { maxOutputLength: chunkBytesMax });
      if (chunk !== null && (await sha256Of(lines.subarray(0, chunk.bytes))) !== chunk.sha256) {
        throw new Error("the lines have another checksum than their record");
      }
      if (chunk?.isSealed === true) this.#cache(key, lines);
      return lines;
    } catch (error) {
      logger.error("a chunk of log lines is damaged; readers skip it", { bucket, key, error: String(error) });
      return null;
    }
  }

  async delete(keys: readonly string[]): Promise<void> {
    const { store, bucket } = this.#options;
    for (const key of keys) {
      this.#forget(key);
      await nullIfAbsent(store.delete(bucket, key));
    }
  }

  /** Deletes all objects whose key has a prefix, also those without a record. */
  async deleteBelow(prefix: string): Promise<void> {
    const { store, bucket } = this.#options;
    for (let startAfter: string | null = ""; startAfter !== null;) {
      const query: Parameters<BucketStore["list"]>[1] = { prefix, delimiter: "", startAfter, keysMax: objectsPerList };
      const page: ListPage | null = await nullIfAbsent(store.list(bucket, query));
      await this.delete((page?.objects ?? []).map(({ key }) => key));
      startAfter = page?.nextStartAfter ?? null;
    }
  }

  #cache(key: string, lines: Buffer): void {
    this.#forget(key);
    this.#cached.set(key, lines);
    this.#cachedBytes += lines.byteLength;
    for (const oldest of this.#cached.keys()) {
      if (this.#cachedBytes <= this.#options.cacheBytesMax) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    this.#cachedBytes -= this.#cached.get(key)?.byteLength ?? 0;
    this.#cached.delete(key);
  }
}

/** Computes a checksum in the thread pool, because chunks are megabytes. Resolves with hex digits. */
export async function sha256Of(bytes: Buffer): Promise<string> {
  return Buffer.from(await webcrypto.subtle.digest("SHA-256", bytes)).toString("hex");
}
