import type { Readable } from "node:stream";
import { AwsError } from "@galatea/base";

/**
 * Objects by bucket and key, for S3's protocol, model downloads and data capture. Errors are AwsError with S3's codes
 * (NoSuchBucket, NoSuchKey, PreconditionFailed, InvalidRange, BadDigest, ...). A put is atomic: readers see the complete
 * object or none. An acknowledged put survives `kill -9` and power loss.
 */
export interface ObjectStore extends AsyncDisposable {
  /** Milliseconds for which callers that poll an object may reuse its head; 0 if `head` reads only memory. */
  readonly headAgeMsMax: number;
  head(bucket: string, key: string): Promise<ObjectHead>;
  /**
   * Opens an object. `range` includes `start` and excludes `end`. The caller must consume or destroy the stream. Its
   * bytes do not change, even if the key is overwritten. If bytes are missing, or a complete read does not match the
   * stored checksum, the stream fails before its last bytes. The error is logged.
   */
  get(
    bucket: string,
    key: string,
    range?: { start: number; end: number },
  ): Promise<{ head: ObjectHead; body: Readable }>;
  /**
   * Writes an object from a stream, in constant memory. If the body fails or the signal aborts, rejects and writes
   * nothing.
   */
  put(bucket: string, key: string, body: Readable, options: PutOptions): Promise<ObjectHead>;
  /** Deletes an object; succeeds if it does not exist. */
  delete(bucket: string, key: string, condition?: DeleteCondition): Promise<void>;
  list(bucket: string, options: ListOptions): Promise<ListPage>;
}

export interface ObjectHead {
  readonly bucket: string;
  readonly key: string;
  readonly byteLength: number;
  /** The ETag with quotes, as in the HTTP header. */
  readonly etag: string;
  readonly lastModifiedMs: number;
  readonly contentType: string;
  /** Headers stored with the object (content-encoding, cache-control, x-amz-meta-*...), lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Base64 values of the known checksums, by algorithm ("crc32", ...). */
  readonly checksums: Readonly<Record<string, string>>;
  /**
   * `COMPOSITE`: checksums cover the checksums of the object's parts. `FULL_OBJECT` or absent: they cover the object's
   * bytes.
   */
  readonly checksumType?: ChecksumType;
}

export const checksumAlgorithms = ["crc32", "crc32c", "crc64nvme", "sha1", "sha256"] as const;
export type ChecksumAlgorithm = (typeof checksumAlgorithms)[number];
export type ChecksumType = "COMPOSITE" | "FULL_OBJECT";

/** The expected properties of a body. A write of a different body fails. */
export interface BodyExpectation {
  /** Checksums to compute while the body is received, and to store. */
  readonly algorithms: readonly ChecksumAlgorithm[];
  /**
   * Returns the base64 checksums that the client sent, by algorithm. Called once after the end of the body, because
   * trailers come last.
   */
  readonly announced: () => Readonly<Partial<Record<ChecksumAlgorithm | "md5" | "signedSha256", string>>>;
  readonly byteLength?: number;
}

/** A condition of a put, checked atomically with the write. Values are ETags with quotes, or `*`. */
export interface PutCondition {
  readonly ifMatch?: string;
  readonly ifNoneMatch?: string;
}

/** A condition of a delete, checked atomically with the removal. `ifMatch` is an ETag with quotes, or `*`. */
export interface DeleteCondition {
  readonly ifMatch?: string;
  /** Epoch time of the last change, compared in whole seconds. */
  readonly lastModifiedMs?: number;
  readonly byteLength?: number;
}

export interface PutOptions {
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly expect?: BodyExpectation;
  readonly condition?: PutCondition;
  /**
   * Called with chunks of the body that were written and are no longer used, so that the caller can release their
   * memory.
   */
  readonly released?: ((chunk: Buffer) => void) | undefined;
}

export interface ListOptions {
  readonly prefix: string;
  readonly delimiter: string;
  /** The listing starts after this key; "": from the beginning. */
  readonly startAfter: string;
  readonly keysMax: number;
  /**
   * Returns true if the listing includes a key; default: all keys. A common prefix is included if one of its keys is.
   */
  readonly isListed?: (key: string) => boolean;
}

/**
 * An object in a listing. `checksums` has an entry for each algorithm; the value is null if the store does not know it.
 */
export interface ListedObject extends Omit<ObjectHead, "contentType" | "headers" | "checksums"> {
  readonly checksums: Readonly<Record<string, string | null>>;
}

export interface ListPage {
  readonly objects: readonly ListedObject[];
  readonly commonPrefixes: readonly string[];
  /**
   * `startAfter` of the next page; null at the end. For a full page, it is the last key or prefix. A page with fewer
   * items ended after many hidden keys; then it is one of them.
   */
  readonly nextStartAfter: string | null;
}

export interface BucketHead {
  readonly bucket: string;
  readonly createdMs: number;
}

/** The highest part number; parts are numbered from 1. */
export const partNumberMax = 10_000;

/** The checksum of an upload's object. `checksumAlgorithm` is null if the object has none. */
export interface UploadChecksum {
  readonly checksumAlgorithm: ChecksumAlgorithm | null;
  readonly checksumType: ChecksumType;
}

export interface UploadHead extends UploadChecksum {
  readonly bucket: string;
  readonly key: string;
  readonly uploadId: string;
  readonly startedMs: number;
}

export interface UploadOptions {
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly checksumAlgorithm: ChecksumAlgorithm | null;
  readonly checksumType: ChecksumType;
}

export interface PartHead {
  readonly partNumber: number;
  readonly byteLength: number;
  readonly etag: string;
  readonly lastModifiedMs: number;
  readonly checksums: Readonly<Record<string, string>>;
}

/** A part as the client lists it at completion. `checksums` is empty if the client sent none. */
export interface CompletedPart {
  readonly partNumber: number;
  readonly etag: string;
  readonly checksums: Readonly<Record<string, string>>;
}

export interface CompleteOptions extends PutOptions {
  /** The completion is rejected if the upload was created with another type. */
  readonly checksumType?: ChecksumType;
}

export interface UploadId {
  readonly bucket: string;
  readonly key: string;
  readonly uploadId: string;
}

export interface ListPartsOptions {
  readonly afterNumber: number;
  readonly countMax: number;
}

export interface ListUploadsOptions {
  readonly prefix: string;
  /**
   * The position after which the listing starts; no upload has to exist there. If `uploadId` is null, it is after all
   * uploads of the key. Null: from the beginning.
   */
  readonly after: { readonly key: string; readonly uploadId: string | null } | null;
  readonly countMax: number;
}

export interface ItemPage<Item> {
  readonly items: readonly Item[];
  /** True if more items follow. */
  readonly isTruncated: boolean;
}

/** The disk use of an object or an unfinished upload. */
export interface StoredItemUsage {
  /** The stored headers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly byteLength: number;
  /** Number of description files, including those of an upload's parts. */
  readonly fileCount: number;
}

/** A store with all operations that S3's protocol needs. */
export interface BucketStore extends ObjectStore {
  buckets(): Promise<readonly BucketHead[]>;
  headBucket(bucket: string): Promise<Pick<BucketHead, "bucket">>;
  /** Rejects with BucketAlreadyOwnedByYou if the bucket exists. */
  createBucket(bucket: string): Promise<Pick<BucketHead, "bucket">>;
  /** Rejects with BucketNotEmpty if the bucket has objects. Unfinished uploads are deleted with the bucket. */
  deleteBucket(bucket: string): Promise<void>;
  /**
   * Copies an object's bytes, ETag and checksums to a new object without reading the bytes. Resolves with null, and
   * writes nothing, if this is impossible: the source has changed, comes from a multipart upload (a copy has another
   * ETag), or has no separate data file.
   */
  link(source: ObjectHead, bucket: string, key: string, options: PutOptions): Promise<ObjectHead | null>;
  /**
   * Sets headers of an object; null removes a header. Bytes, ETag and date do not change. The change is as durable as a
   * put.
   */
  changeHeaders(bucket: string, key: string, changes: Readonly<Record<string, string | null>>): Promise<ObjectHead>;
  createUpload(bucket: string, key: string, options: UploadOptions): Promise<UploadHead>;
  putPart(upload: UploadId, partNumber: number, body: Readable, options: PutOptions): Promise<PartHead>;
  /**
   * Completes an upload. `parts` must be ascending; `expect.byteLength` is the length of the object. A repeated call
   * with the same id returns the same result while the object is unchanged.
   */
  completeUpload(upload: UploadId, parts: readonly CompletedPart[], options: CompleteOptions): Promise<ObjectHead>;
  abortUpload(upload: UploadId): Promise<void>;
  headUpload(upload: UploadId): Promise<UploadChecksum>;
  /** Lists parts, ascending by number. */
  listParts(upload: UploadId, options: ListPartsOptions): Promise<ItemPage<PartHead>>;
  /**
   * Lists unfinished uploads by key, then by id, which is the order of their creation. Unfinished uploads are deleted
   * after `uploadAgeMsMax`.
   */
  listUploads(bucket: string, options: ListUploadsOptions): Promise<ItemPage<UploadHead>>;
  /**
   * Yields the objects and uploads of all buckets. The iteration reflects concurrent changes, so the caller may yield to
   * the event loop between two items. Absent if the store would need a call for each item.
   */
  kept?(): Iterable<StoredItemUsage>;
}

/** A store that can count its objects and uploads without further calls. */
export type CountedStore = BucketStore & Required<Pick<BucketStore, "kept">>;

/** Resolves with null if a call rejects because the object or bucket does not exist. */
export async function nullIfAbsent<Value>(found: Promise<Value>): Promise<Value | null> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof AwsError && absentCodes.has(error.code)) return null;
    throw error;
  }
}

const absentCodes: ReadonlySet<string> = new Set(["NoSuchKey", "NoSuchBucket", "NotFound"]);
