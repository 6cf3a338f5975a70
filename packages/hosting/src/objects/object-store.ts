import type { Readable } from "node:stream";
import { AwsError } from "@galatea/base";

/**
 * Objects by bucket and key: what S3's protocol, model downloads and captures need. Errors are AwsError with S3's codes
 * (NoSuchBucket, NoSuchKey, PreconditionFailed, InvalidRange, BadDigest, ...). A put is visible whole or not at all, and
 * survives kill -9 and power loss once acknowledged.
 */
export interface ObjectStore extends AsyncDisposable {
  /** Milliseconds for which callers that poll an object may use its head again; 0 where `head` reads memory. */
  readonly headAgeMsMax: number;
  head(bucket: string, key: string): Promise<ObjectHead>;
  /**
   * `range` includes `start` and excludes `end`. The stream must be consumed or destroyed; its bytes stay as they were
   * at opening, even if the key is overwritten. It fails, and this is logged, if the bytes end early or if a complete
   * read does not match the stored checksum; then it fails before its last bytes.
   */
  get(
    bucket: string,
    key: string,
    range?: { start: number; end: number },
  ): Promise<{ head: ObjectHead; body: Readable }>;
  /** Streams in constant memory; rejects and leaves nothing when the body errors or the signal aborts. */
  put(bucket: string, key: string, body: Readable, options: PutOptions): Promise<ObjectHead>;
  /** Deletes an object; succeeds if it does not exist. */
  delete(bucket: string, key: string, condition?: DeleteCondition): Promise<void>;
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
  /** Base64 values of the known checksums, by algorithm ("crc32", ...). */
  readonly checksums: Readonly<Record<string, string>>;
  /** True if checksums cover the object's bytes or its parts' checksums; absent: the bytes. */
  readonly checksumType?: ChecksumType;
}

export const checksumAlgorithms = ["crc32", "crc32c", "crc64nvme", "sha1", "sha256"] as const;
export type ChecksumAlgorithm = (typeof checksumAlgorithms)[number];
export type ChecksumType = "COMPOSITE" | "FULL_OBJECT";

/** The expected properties of a body; a write of a different body fails. */
export interface BodyExpectation {
  /** Checksums that are computed while the body streams, and stored. */
  readonly algorithms: readonly ChecksumAlgorithm[];
  /**
   * Returns the announced base64 values of any algorithm and of md5; called once after the end of the body, because
   * trailers come last.
   */
  readonly announced: () => Readonly<Partial<Record<ChecksumAlgorithm | "md5" | "signedSha256", string>>>;
  readonly byteLength?: number;
}

/** Checked in the same step that makes the object visible. ETags with their quotes, or `*`. */
export interface PutCondition {
  readonly ifMatch?: string;
  readonly ifNoneMatch?: string;
}

/** Checked in the same step that removes the object. The ETag with its quotes, or `*`. */
export interface DeleteCondition {
  readonly ifMatch?: string;
  /** Compared by the second. */
  readonly lastModifiedMs?: number;
  readonly byteLength?: number;
}

export interface PutOptions {
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly expect?: BodyExpectation;
  readonly condition?: PutCondition;
  /** Called with chunks of the body that are written and no longer used, so that their memory can be released. */
  readonly released?: ((chunk: Buffer) => void) | undefined;
}

export interface ListOptions {
  readonly prefix: string;
  readonly delimiter: string;
  /** Keys after this one, exclusive; "" from the start. */
  readonly startAfter: string;
  readonly keysMax: number;
  /** Returns whether the listing shows a key; all by default. A prefix is shown with the first of its shown keys. */
  readonly isListed?: (key: string) => boolean;
}

/** An object in a listing. The keys of `checksums` are its algorithms; a store may not know their values. */
export interface ListedObject extends Omit<ObjectHead, "contentType" | "headers" | "checksums"> {
  readonly checksums: Readonly<Record<string, string | null>>;
}

export interface ListPage {
  readonly objects: readonly ListedObject[];
  readonly commonPrefixes: readonly string[];
  /**
   * Start of the next page, null at the end: the last key or prefix of a full page. A page that is not full stopped
   * after many hidden keys, and names one of them.
   */
  readonly nextStartAfter: string | null;
}

export interface BucketHead {
  readonly bucket: string;
  readonly createdMs: number;
}

/** The highest part number; parts are numbered from 1. */
export const partNumberMax = 10_000;

/** The checksum that the object of an upload gets; null: none. */
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

/** A part as the client lists it at completion; checksums only where it sent them. */
export interface CompletedPart {
  readonly partNumber: number;
  readonly etag: string;
  readonly checksums: Readonly<Record<string, string>>;
}

export interface CompleteOptions extends PutOptions {
  /** Rejected if the upload was created with another. */
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
   * A position, whether or not an upload is there; without an id it is after all uploads of that key. Null: from the
   * beginning.
   */
  readonly after: { readonly key: string; readonly uploadId: string | null } | null;
  readonly countMax: number;
}

export interface ItemPage<Item> {
  readonly items: readonly Item[];
  /** True if more follow. */
  readonly isTruncated: boolean;
}

/** The disk use of an object or an unfinished upload. */
export interface StoredItemUsage {
  /** The stored headers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly byteLength: number;
  /** Its description, and those of an upload's parts. */
  readonly fileCount: number;
}

/** The interface that S3 needs of a store. */
export interface BucketStore extends ObjectStore {
  buckets(): Promise<readonly BucketHead[]>;
  headBucket(bucket: string): Promise<Pick<BucketHead, "bucket">>;
  /** Rejects with BucketAlreadyOwnedByYou if it exists. */
  createBucket(bucket: string): Promise<Pick<BucketHead, "bucket">>;
  /** Rejects with BucketNotEmpty while it has objects; unfinished uploads are deleted with it. */
  deleteBucket(bucket: string): Promise<void>;
  /**
   * Writes an object with the bytes, ETag and checksums of another one without reading them. Resolves with null, and
   * writes nothing, if the store cannot: the source is not `source` any more, or is the result of a multipart upload,
   * whose ETag a copy does not keep; in a directory, it has no file of its own.
   */
  link(source: ObjectHead, bucket: string, key: string, options: PutOptions): Promise<ObjectHead | null>;
  /** Sets headers of an object or, with null, removes them; bytes, ETag and date stay. Durable like a put. */
  changeHeaders(bucket: string, key: string, changes: Readonly<Record<string, string | null>>): Promise<ObjectHead>;
  createUpload(bucket: string, key: string, options: UploadOptions): Promise<UploadHead>;
  putPart(upload: UploadId, partNumber: number, body: Readable, options: PutOptions): Promise<PartHead>;
  /**
   * Completes an upload; parts ascend, `expect.byteLength` is the object's. Completing twice with the same id returns
   * the same result while the object is unchanged.
   */
  completeUpload(upload: UploadId, parts: readonly CompletedPart[], options: CompleteOptions): Promise<ObjectHead>;
  abortUpload(upload: UploadId): Promise<void>;
  headUpload(upload: UploadId): Promise<UploadChecksum>;
  /** Ascending by number. */
  listParts(upload: UploadId, options: ListPartsOptions): Promise<ItemPage<PartHead>>;
  /**
   * In the order of keys, then of ids, which is that of their starts. Unfinished uploads are deleted after
   * `uploadAgeMsMax`.
   */
  listUploads(bucket: string, options: ListUploadsOptions): Promise<ItemPage<UploadHead>>;
  /**
   * Yields the objects and uploads of all buckets as they are while it is read; the caller may yield to the event loop
   * meanwhile. Absent in a store that does not know them without a call for each.
   */
  kept?(): Iterable<StoredItemUsage>;
}

/** A store that knows what it holds. */
export type CountedStore = BucketStore & Required<Pick<BucketStore, "kept">>;

/** Resolves with null instead of rejecting because the object or bucket does not exist. */
export async function nullIfAbsent<Value>(found: Promise<Value>): Promise<Value | null> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof AwsError && absentCodes.has(error.code)) return null;
    throw error;
  }
}

const absentCodes: ReadonlySet<string> = new Set(["NoSuchKey", "NoSuchBucket", "NotFound"]);
