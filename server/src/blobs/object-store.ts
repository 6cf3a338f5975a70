import type { Readable } from "node:stream";

/**
 * Objects by bucket and key: what S3's protocol, model downloads and captures need. Errors are AwsError with S3's codes
 * (NoSuchBucket, NoSuchKey, PreconditionFailed, InvalidRange, BadDigest, ...). A put is visible whole or not at all, and
 * survives kill -9 and power loss once acknowledged.
 */
export interface ObjectStore extends AsyncDisposable {
  head(bucket: string, key: string): Promise<ObjectHead>;
  /** `range` is inclusive of `start`, exclusive of `end`. The stream must be consumed or destroyed. */
  get(
    bucket: string,
    key: string,
    range?: { start: number; end: number },
  ): Promise<{ head: ObjectHead; body: Readable }>;
  /** Streams in constant memory; rejects and leaves nothing behind when the body errors or the signal aborts. */
  put(bucket: string, key: string, body: Readable, options: PutOptions): Promise<ObjectHead>;
  delete(bucket: string, key: string): Promise<void>;
  list(bucket: string, options: ListOptions): Promise<ListPage>;
}

export interface ObjectHead {
  readonly bucket: string;
  readonly key: string;
  readonly byteLength: number;
  /** With its quotes, as in the header. */
  readonly etag: string;
  readonly lastModifiedMs: number;
  readonly contentType: string;
  /** Headers stored with the object (content-encoding, cache-control, x-amz-meta-*...), lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Algorithm ("crc32", ...) to base64 value, of those known. */
  readonly checksums: Readonly<Record<string, string>>;
}

export interface PutOptions {
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export interface ListOptions {
  readonly prefix: string;
  readonly delimiter: string;
  /** Keys after this one, exclusive; "" from the start. */
  readonly startAfter: string;
  readonly keysMax: number;
}

export interface ListPage {
  readonly objects: readonly ObjectHead[];
  readonly commonPrefixes: readonly string[];
  /** The last key or prefix of the page when more follow, null at the end. */
  readonly nextStartAfter: string | null;
}
