import type { Readable } from "node:stream";
import { AwsError } from "@galatea/base";
import { noSuchBucket } from "./directory-bucket.ts";
import type {
  BucketHead,
  BucketStore,
  CompletedPart,
  CompleteOptions,
  DeleteCondition,
  ListOptions,
  ListPartsOptions,
  ListUploadsOptions,
  ObjectHead,
  PutOptions,
  UploadId,
  UploadOptions,
} from "./object-store.ts";

/** The start of the name of each bucket with log lines. */
export const logBucketPrefix = "galatea-logs-";

/** Returns true for the name of a bucket with log lines, of any platform. */
export const isLogBucket = (bucket: string): boolean => bucket.startsWith(logBucketPrefix);

/**
 * Returns a view of a store without the buckets that platforms use for their own objects. Calls that name such a bucket
 * are rejected with NoSuchBucket, and its creation with BucketAlreadyExists.
 */
export function hideBuckets(store: BucketStore, isHidden: (bucket: string) => boolean): BucketStore {
  return new StoreWithoutBuckets(store, isHidden);
}

class StoreWithoutBuckets implements BucketStore {
  readonly headAgeMsMax: number;
  readonly kept?: NonNullable<BucketStore["kept"]>;
  readonly #store: BucketStore;
  readonly #isHidden: (bucket: string) => boolean;

  constructor(store: BucketStore, isHidden: (bucket: string) => boolean) {
    this.#store = store;
    this.#isHidden = isHidden;
    this.headAgeMsMax = store.headAgeMsMax;
    if (store.kept !== undefined) this.kept = store.kept.bind(store);
  }

  async buckets(): Promise<readonly BucketHead[]> {
    return (await this.#store.buckets()).filter(({ bucket }) => !this.#isHidden(bucket));
  }

  async headBucket(bucket: string) {
    return await this.#storeOf(bucket).headBucket(bucket);
  }

  async createBucket(bucket: string) {
    if (this.#isHidden(bucket)) {
      throw new AwsError("BucketAlreadyExists", "The requested bucket name is not available. Select a different name.");
    }
    return await this.#store.createBucket(bucket);
  }

  async deleteBucket(bucket: string) {
    await this.#storeOf(bucket).deleteBucket(bucket);
  }

  async head(bucket: string, key: string) {
    return await this.#storeOf(bucket).head(bucket, key);
  }

  async get(bucket: string, key: string, range?: { start: number; end: number }) {
    return await this.#storeOf(bucket).get(bucket, key, range);
  }

  async put(bucket: string, key: string, body: Readable, options: PutOptions) {
    if (this.#isHidden(bucket)) body.destroy();
    return await this.#storeOf(bucket).put(bucket, key, body, options);
  }

  async delete(bucket: string, key: string, condition?: DeleteCondition) {
    await this.#storeOf(bucket).delete(bucket, key, condition);
  }

  async list(bucket: string, options: ListOptions) {
    return await this.#storeOf(bucket).list(bucket, options);
  }

  async link(source: ObjectHead, bucket: string, key: string, options: PutOptions) {
    this.#storeOf(source.bucket);
    return await this.#storeOf(bucket).link(source, bucket, key, options);
  }

  async changeHeaders(bucket: string, key: string, changes: Readonly<Record<string, string | null>>) {
    return await this.#storeOf(bucket).changeHeaders(bucket, key, changes);
  }

  async createUpload(bucket: string, key: string, options: UploadOptions) {
    return await this.#storeOf(bucket).createUpload(bucket, key, options);
  }

  async putPart(upload: UploadId, partNumber: number, body: Readable, options: PutOptions) {
    if (this.#isHidden(upload.bucket)) body.destroy();
    return await this.#storeOf(upload.bucket).putPart(upload, partNumber, body, options);
  }

  async completeUpload(upload: UploadId, parts: readonly CompletedPart[], options: CompleteOptions) {
    return await this.#storeOf(upload.bucket).completeUpload(upload, parts, options);
  }

  async abortUpload(upload: UploadId) {
    await this.#storeOf(upload.bucket).abortUpload(upload);
  }

  async headUpload(upload: UploadId) {
    return await this.#storeOf(upload.bucket).headUpload(upload);
  }

  async listParts(upload: UploadId, options: ListPartsOptions) {
    return await this.#storeOf(upload.bucket).listParts(upload, options);
  }

  async listUploads(bucket: string, options: ListUploadsOptions) {
    return await this.#storeOf(bucket).listUploads(bucket, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }

  #storeOf(bucket: string): BucketStore {
    if (this.#isHidden(bucket)) throw noSuchBucket();
    return this.#store;
  }
}
