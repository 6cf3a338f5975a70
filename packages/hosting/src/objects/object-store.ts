import type { Readable } from "node:stream";
import { AwsError } from "@galatea/base";

/**
 * Objects by bucket and key: what S3's protocol, model downloads and captures need. Errors are AwsError with S3's codes
 * (NoSuchBucket, NoSuchKey, PreconditionFailed, InvalidRange, BadDigest, ...). A put is visible whole or not at all, and
 * survives kill -9 and power loss once acknowledged.
 */
export interface ObjectStore extends AsyncDisposable {
  head(bucket: string, key: string): Promise<ObjectHead>;
  /**
   * `range` is inclusive of `start`, exclusive of `end`. The stream must be consumed or destroyed; what it gives stays as it was when it
   * was opened, whatever happens to the key. It fails, and this is logged, where the bytes end early and, before the last of them, where
   * those of a whole object are not what was stored.
   */
  get(
    bucket: string,
    key: string,
    range?: { start: number; end: number },
  ): Promise<{ head: ObjectHead; body: Readable }>;
  /** Streams in constant memory; rejects and leaves nothing behind when the body errors or the signal aborts. */
  put(bucket: string, key: string, body: Readable, options: PutOptions): Promise<ObjectHead>;
  /** Of an object that is not there it is done already. */
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
  /** Algorithm ("crc32", ...) to base64 value, of those known. */
  readonly checksums: Readonly<Record<string, string>>;
  /** Whether checksums cover the object's bytes or its parts' checksums; absent: the bytes. */
  readonly checksumType?: ChecksumType;
}

export const checksumAlgorithms = ["crc32", "crc32c", "crc64nvme", "sha1", "sha256"] as const;
export type ChecksumAlgorithm = (typeof checksumAlgorithms)[number];
export type ChecksumType = "COMPOSITE" | "FULL_OBJECT";

/** What a body has to be for its write to be kept. */
export interface BodyExpectation {
  /** Computed while the body streams, and stored. */
  readonly algorithms: readonly ChecksumAlgorithm[];
  /** Asked once the body has ended (trailers come last): the values it was announced with, of any algorithm and of md5, base64. */
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
  /** Called with chunks of the body whose bytes are written and are not looked at again, so that their memory can be given back. */
  readonly released?: ((chunk: Buffer) => void) | undefined;
}

export interface ListOptions {
  readonly prefix: string;
  readonly delimiter: string;
  /** Keys after this one, exclusive; "" from the start. */
  readonly startAfter: string;
  readonly keysMax: number;
  /** Returns whether the listing shows a key; a prefix is shown with the first of its keys that is. All are shown unless given. */
  readonly isListed?: (key: string) => boolean;
}

export interface ListPage {
  readonly objects: readonly ObjectHead[];
  readonly commonPrefixes: readonly string[];
  /**
   * Where the next page begins, null at the end: the last key or prefix of a full page. A page that is not full stopped after many keys
   * that are not shown, and names one of them.
   */
  readonly nextStartAfter: string | null;
}

export interface BucketHead {
  readonly bucket: string;
  readonly createdMs: number;
}

/** Parts have numbers from 1 to this. */
export const partNumberMax = 10_000;

export interface UploadHead {
  readonly bucket: string;
  readonly key: string;
  readonly uploadId: string;
  readonly startedMs: number;
  readonly checksumAlgorithm: ChecksumAlgorithm | null;
  readonly checksumType: ChecksumType;
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

/** A part as the client names it at the end; checksums only where it sent them. */
export interface CompletedPart {
  readonly partNumber: number;
  readonly etag: string;
  readonly checksums: Readonly<Record<string, string>>;
}

export interface CompleteOptions extends PutOptions {
  /** Refused where the upload was begun with another. */
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
  /** A place, whether or not an upload is there; without an id, all uploads of that key are before it. Null: from the beginning. */
  readonly after: { readonly key: string; readonly uploadId: string | null } | null;
  readonly countMax: number;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** Whether there are more behind them. */
  readonly isTruncated: boolean;
}

/** What an object or an unfinished upload keeps of the disk. */
export interface KeptBytes {
  /** Those that are stored with it. */
  readonly headers: Readonly<Record<string, string>>;
  readonly byteLength: number;
  /** Its description, and those of an upload's parts. */
  readonly fileCount: number;
}

/** Everything S3 needs of a store that holds the bytes itself. */
export interface BucketStore extends ObjectStore {
  buckets(): Promise<readonly BucketHead[]>;
  headBucket(bucket: string): Promise<BucketHead>;
  /** BucketAlreadyOwnedByYou when it exists. */
  createBucket(bucket: string): Promise<BucketHead>;
  /** BucketNotEmpty while it has objects; unfinished uploads go with it. */
  deleteBucket(bucket: string): Promise<void>;
  /** Headers stored with an object, each set or, with null, taken away; bytes, ETag and date stay. Durable like a put. */
  changeHeaders(bucket: string, key: string, changes: Readonly<Record<string, string | null>>): Promise<ObjectHead>;
  createUpload(bucket: string, key: string, options: UploadOptions): Promise<UploadHead>;
  putPart(upload: UploadId, partNumber: number, body: Readable, options: PutOptions): Promise<PartHead>;
  /** Parts ascending; `expect.byteLength` is of the object. Completing twice with the same id answers the same while the object is still the one that was made. */
  completeUpload(upload: UploadId, parts: readonly CompletedPart[], options: CompleteOptions): Promise<ObjectHead>;
  abortUpload(upload: UploadId): Promise<void>;
  headUpload(upload: UploadId): Promise<UploadHead>;
  /** Ascending by number. */
  listParts(upload: UploadId, options: ListPartsOptions): Promise<Page<PartHead>>;
  /** In the order of keys, then of ids, which is that of their starts. Unfinished ones end by themselves after `uploadAgeMsMax`. */
  listUploads(bucket: string, options: ListUploadsOptions): Promise<Page<UploadHead>>;
  /** Of all buckets, as they are while it is read, in which others may have their turns. */
  kept(): Iterable<KeptBytes>;
}

/** Resolves with null instead of rejecting because the object or bucket does not exist. */
export async function absentAsNull<Value>(found: Promise<Value>): Promise<Value | null> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof AwsError && absentCodes.has(error.code)) return null;
    throw error;
  }
}

const absentCodes: ReadonlySet<string> = new Set(["NoSuchKey", "NoSuchBucket", "NotFound"]);
