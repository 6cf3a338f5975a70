import { link, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { basename, join } from "node:path";
import type { Readable } from "node:stream";
import { AwsError, type Clock, KeyedLock, type Logger, systemClock, TaskGroup } from "@galatea/base";
import { checkBucketName, isBucketName } from "./bucket-name.ts";
import { checkBody, toStoreError, requiredDigests, receiveBody } from "./body-file.ts";
import { checkCompleteRequest, checkCompletedChecksums, chooseParts, multipartEtag } from "./completed-parts.ts";
import { isQuarantined, readChecksummed, checksummedText, quarantineFile } from "./damaged-file.ts";
import { decodeCrc32 } from "./checksum.ts";
import { FileSystemBucket, noSuchBucket, type UncommittedObject } from "./directory-bucket.ts";
import { createDurably, syncFolder } from "./durable-file.ts";
import { DirectoryUploads, type UploadLimits } from "./directory-uploads.ts";
import { HashPool } from "./hash-pool.ts";
import { readObjectBytes, type OpenObject } from "./object-bytes.ts";
import { partNumberMax } from "./object-store.ts";
import { SmallFiles } from "./small-files.ts";
import type {
  BucketHead,
  BucketStore,
  CompletedPart,
  CompleteOptions,
  CountedStore,
  DeleteCondition,
  StoredItemUsage,
  ListOptions,
  ListPartsOptions,
  ListUploadsOptions,
  ListPage,
  ObjectHead,
  ItemPage,
  PartHead,
  PutOptions,
  UploadHead,
  UploadId,
  UploadOptions,
} from "./object-store.ts";

export interface DirectoryStoreLimits extends UploadLimits {
  readonly bucketsMax: number;
  /** Maximum number of objects in one bucket. It is limited, because all heads are in memory. */
  readonly objectsMax: number;
  readonly keyBytesMax: number;
}

export interface DirectoryStoreOptions {
  /** Folder of the store; created if absent. Only one process may use it at a time. */
  readonly folder: string;
  readonly logger: Logger;
  readonly clock?: Clock;
  /**
   * Number of processors that the process may use; default 1. Half of them, at most four, hash long bodies. The others
   * serve requests.
   */
  readonly processorCount?: number;
  readonly limits?: Partial<DirectoryStoreLimits>;
}

export const directoryStoreLimits: DirectoryStoreLimits = {
  objectBytesMax: 5 * 2 ** 40,
  partBytesMin: 5 * 2 ** 20,
  uploadsMax: 10_000,
  uploadAgeMsMax: 7 * 24 * 3600 * 1000,
  bucketsMax: 1000,
  objectsMax: 2_000_000,
  keyBytesMax: 1024,
};

const expiryIntervalMs = 3_600_000;
const hashThreadsMax = 4;

interface OpenBucket {
  readonly objects: FileSystemBucket;
  readonly uploads: DirectoryUploads;
}

/** Opens a store: reads the entries of all buckets and removes files that interrupted writes left. */
export async function openDirectoryStore(options: DirectoryStoreOptions): Promise<CountedStore> {
  const store = new DirectoryStore(options);
  await store.load();
  return store;
}

class DirectoryStore implements BucketStore {
  readonly headAgeMsMax = 0;
  readonly #folder: string;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #limits: DirectoryStoreLimits;
  readonly #pool: HashPool;
  readonly #files = new SmallFiles();
  readonly #buckets = new Map<string, OpenBucket>();
  /** Serializes creation and removal of each bucket's folder. */
  readonly #transitions = new KeyedLock();
  readonly #upkeep: TaskGroup;
  #expiry: Disposable | null = null;

  constructor(options: DirectoryStoreOptions) {
    this.#folder = options.folder;
    this.#logger = options.logger;
    this.#clock = options.clock ?? systemClock;
    this.#pool = new HashPool(this.#clock, Math.min(hashThreadsMax, Math.ceil((options.processorCount ?? 1) / 2)));
    this.#limits = { ...directoryStoreLimits, ...options.limits };
    this.#upkeep = new TaskGroup((error) =>
      options.logger.error("unfinished uploads could not be removed", { error: String(error) }),
    );
  }

  async load(): Promise<void> {
    await mkdir(join(this.#folder, "buckets"), { recursive: true });
    // Removes bucket folders whose creation or removal was interrupted.
    await rm(join(this.#folder, "tmp"), { recursive: true, force: true });
    await mkdir(join(this.#folder, "tmp"));
    for (const entry of await readdir(join(this.#folder, "buckets"), { withFileTypes: true })) {
      const { name } = entry;
      if (isQuarantined(name)) continue;
      const folder = join(this.#folder, "buckets", name);
      if (!entry.isDirectory() || !isBucketName(name) || !(await isBucketFolder(folder))) {
        await quarantineFile(folder, "an unknown file is among the buckets", "", this.#logger);
        continue;
      }
      const bucket = this.#opened(await this.#readHead(folder), folder);
      await bucket.objects.load(this.#logger);
      const { index } = bucket.objects;
      const isCompleted = ({ key, uploadId }: UploadId) => index.get(key)?.uploadId === uploadId;
      await bucket.uploads.load(name, isCompleted, this.#logger);
      this.#buckets.set(name, bucket);
    }
    this.#expireLater();
  }

  /** Returns the head of a bucket. If `bucket.json` is damaged, returns a default head with the folder's name. */
  async #readHead(folder: string): Promise<BucketHead> {
    const path = join(folder, "bucket.json");
    const bucket = basename(folder);
    let reason: string;
    try {
      const { content, isRepaired } = await readChecksummed<BucketHead>(path);
      if (content.bucket === bucket && Number.isFinite(content.createdMs) && !isRepaired) return content;
      reason = isRepaired ? "one of its bits had flipped" : "it belongs to another bucket";
    } catch (error) {
      reason = String(error);
    }
    const damaged = await stat(path).catch(() => null);
    if (damaged !== null) await quarantineFile(path, "a bucket's description is damaged", reason, this.#logger);
    else this.#logger.error("a bucket's description is missing and is created again", { path, reason });
    const head = { bucket, createdMs: Math.floor((damaged ?? (await stat(folder))).birthtimeMs) };
    await createDurably(path, [Buffer.from(checksummedText(head))]);
    return head;
  }

  #opened(head: BucketHead, folder: string): OpenBucket {
    const tools = { trash: join(this.#folder, "tmp"), pool: this.#pool, clock: this.#clock, limits: this.#limits };
    return {
      objects: new FileSystemBucket(head, folder, {
        files: this.#files,
        logger: this.#logger,
      }),
      uploads: new DirectoryUploads(join(folder, "uploads"), tools),
    };
  }

  #bucket(name: string): OpenBucket {
    const bucket = this.#buckets.get(name);
    if (bucket === undefined) throw noSuchBucket();
    return bucket;
  }

  /** Runs a task on a bucket. If it fails because the bucket was deleted meanwhile, rejects with NoSuchBucket. */
  async #within<Result>(name: string, task: (bucket: OpenBucket) => Promise<Result>): Promise<Result> {
    const bucket = this.#bucket(name);
    try {
      return await task(bucket);
    } catch (cause) {
      if (cause instanceof AwsError || this.#buckets.get(name) === bucket) throw cause;
      throw noSuchBucket(cause);
    }
  }

  buckets(): Promise<readonly BucketHead[]> {
    const heads = [...this.#buckets.values()].map((bucket) => bucket.objects.head);
    return Promise.resolve(heads.toSorted((a, b) => (a.bucket < b.bucket ? -1 : 1)));
  }

  async headBucket(bucket: string): Promise<BucketHead> {
    return this.#bucket(bucket).objects.head;
  }

  async createBucket(bucket: string): Promise<BucketHead> {
    checkBucketName(bucket);
    return this.#transitions.run(bucket, async () => {
      this.#refuseExisting(bucket);
      if (this.#buckets.size >= this.#limits.bucketsMax) {
        throw new AwsError("TooManyBuckets", "You have attempted to create more buckets than allowed");
      }
      const head = { bucket, createdMs: this.#clock.epochMs() };
      const generated = this.#temporaryPath();
      const folder = join(this.#folder, "buckets", bucket);
      try {
        await mkdir(join(generated, "objects"), { recursive: true });
        await mkdir(join(generated, "uploads"));
        await createDurably(join(generated, "bucket.json"), [Buffer.from(checksummedText(head))]);
        await rename(generated, folder);
      } catch (cause) {
        await rm(generated, { recursive: true, force: true });
        throw toStoreError(cause);
      }
      this.#buckets.set(bucket, this.#opened(head, folder));
      await syncFolder(join(this.#folder, "buckets"));
      return head;
    });
  }

  #temporaryPath(): string {
    return join(this.#folder, "tmp", randomBytes(9).toString("hex"));
  }

  #refuseExisting(bucket: string): void {
    if (!this.#buckets.has(bucket)) return;
    const message = "Your previous request to create the named bucket succeeded and you already own it.";
    throw new AwsError("BucketAlreadyOwnedByYou", message, { statusFallback: 409 });
  }

  async deleteBucket(bucket: string): Promise<void> {
    await this.#transitions.run(bucket, async () => {
      const { objects, uploads } = this.#bucket(bucket);
      objects.close();
      uploads.close();
      this.#buckets.delete(bucket);
      await objects[Symbol.asyncDispose]();
      const trash = this.#temporaryPath();
      await rename(objects.folder, trash);
      await syncFolder(join(this.#folder, "buckets"));
      await rm(trash, { recursive: true, force: true });
    });
  }

  async head(bucket: string, key: string): Promise<ObjectHead> {
    return this.#bucket(bucket).objects.entry(key).head;
  }

  /** Opens an object. The caller closes the file. */
  async #open(bucket: string, key: string): Promise<OpenObject> {
    const { objects } = this.#bucket(bucket);
    for (;;) {
      const entry = objects.entry(key);
      try {
        return { entry, file: await open(objects.dataPath(entry), "r") };
      } catch (cause) {
        // The object was replaced between lookup and open, so the new version is opened. Any other error is unexpected.
        if ((cause as NodeJS.ErrnoException).code !== "ENOENT" || objects.index.get(key) === entry) throw cause;
      }
    }
  }

  async get(bucket: string, key: string, range?: { start: number; end: number }) {
    const opened = await this.#open(bucket, key);
    const { head } = opened.entry;
    const { start, end } = range ?? { start: 0, end: head.byteLength };
    if (start < 0 || end > head.byteLength || start > end) {
      await opened.file.close();
      throw new AwsError("InvalidRange", "The requested range is not satisfiable", { statusFallback: 416 });
    }
    const onDamage = (reason: string) => this.#logger.error("an object's bytes are damaged", { bucket, key, reason });
    return { head, body: readObjectBytes(opened, { start, end }, onDamage) };
  }

  async put(bucket: string, key: string, body: Readable, options: PutOptions): Promise<ObjectHead> {
    try {
      return await this.#within(bucket, ({ objects }) => this.#write(objects, key, body, options));
    } finally {
      body.destroy();
    }
  }

  async #write(objects: FileSystemBucket, key: string, body: Readable, options: PutOptions): Promise<ObjectHead> {
    this.#checkKey(objects, key);
    const path = await objects.newDataPath(key);
    const digests = requiredDigests(options.expect);
    const written = await receiveBody(path, body, this.#pool, {
      digests,
      signal: options.signal,
      bytesMax: this.#limits.objectBytesMax,
      released: options.released,
    });
    const { md5 = "", ...computed } = written.digests;
    const kept = options.expect?.algorithms ?? [];
    const announced = options.expect?.announced() ?? {};
    const head: ObjectHead = {
      ...this.#headOf(objects.head.bucket, key, options),
      byteLength: written.byteLength,
      etag: `"${Buffer.from(md5, "base64").toString("hex")}"`,
      // A SHA-256 that was computed only for the signature is not a checksum of the object.
      checksums: Object.fromEntries(
        Object.entries(computed).filter(
          ([name]) =>
            kept.includes(name as never) &&
            !(name === "sha256" && "signedSha256" in announced && !("sha256" in announced)),
        ),
      ),
    };
    const { chunks } = written;
    const bytes = chunks === null ? ({ at: "file", path } as const) : ({ at: "memory", chunks } as const);
    const generated = { head, crc32: decodeCrc32(computed.crc32 ?? ""), uploadId: null, bytes };
    return this.#commit(objects, generated, options, () => checkBody(written, options.expect));
  }

  async link(source: ObjectHead, bucket: string, key: string, options: PutOptions): Promise<ObjectHead | null> {
    const { etag, byteLength, checksums } = source;
    return await this.#within(bucket, async ({ objects }) => {
      this.#checkKey(objects, key);
      const from = this.#bucket(source.bucket).objects;
      const entry = from.index.get(source.key);
      // The ETag of a multipart upload ends with the number of its parts.
      if (entry === undefined || entry.data === null || entry.head.etag !== etag || etag.includes("-")) return null;
      const path = await objects.newDataPath(key);
      try {
        await link(from.dataPath(entry), path);
      } catch (cause) {
        // ENOENT: the source was replaced. EMLINK: the file system's link limit (65,000 on ext4).
        if (["ENOENT", "EMLINK"].includes((cause as NodeJS.ErrnoException).code ?? "")) return null;
        throw toStoreError(cause);
      }
      const head: ObjectHead = { ...this.#headOf(bucket, key, options), byteLength, etag, checksums };
      const generated = { head, crc32: entry.crc32, uploadId: null, bytes: { at: "file", path } as const };
      return await this.#commit(objects, generated, options, () => {});
    });
  }

  #headOf(bucket: string, key: string, options: Pick<PutOptions, "contentType" | "headers">) {
    const { contentType = "binary/octet-stream", headers = {} } = options;
    return { bucket, key, contentType, headers, lastModifiedMs: this.#clock.epochMs() };
  }

  /** Commits a new object. A file with its bytes becomes the object's data file, or is removed on failure. */
  async #commit(
    objects: FileSystemBucket,
    generated: UncommittedObject,
    options: PutOptions,
    check: () => void,
  ): Promise<ObjectHead> {
    const { bytes, head } = generated;
    try {
      check();
      options.signal.throwIfAborted();
      await objects.commit(generated, options.condition);
      return head;
    } catch (cause) {
      const isLeft = bytes.at === "file" && objects.index.get(head.key)?.data !== basename(bytes.path);
      if (isLeft) await rm(bytes.path, { force: true });
      throw cause;
    }
  }

  #checkKey(objects: FileSystemBucket, key: string): void {
    if (Buffer.byteLength(key) > this.#limits.keyBytesMax) {
      throw new AwsError("KeyTooLongError", "Your key is too long", {
        members: { Size: Buffer.byteLength(key), MaxSizeAllowed: this.#limits.keyBytesMax },
      });
    }
    if (objects.index.size >= this.#limits.objectsMax && objects.index.get(key) === undefined) {
      throw new AwsError(
        "InsufficientStorage",
        `The bucket holds ${this.#limits.objectsMax} objects, as many as this server allows`,
        {
          statusFallback: 507,
        },
      );
    }
  }

  async delete(bucket: string, key: string, condition?: DeleteCondition): Promise<void> {
    await this.#within(bucket, ({ objects }) => objects.delete(key, condition));
  }

  async changeHeaders(bucket: string, key: string, changes: Readonly<Record<string, string | null>>) {
    return this.#within(bucket, ({ objects }) => objects.changeHeaders(key, changes));
  }

  async list(bucket: string, options: ListOptions): Promise<ListPage> {
    return this.#bucket(bucket).objects.index.list(options);
  }

  async createUpload(bucket: string, key: string, options: UploadOptions): Promise<UploadHead> {
    return this.#within(bucket, async ({ objects, uploads }) => {
      this.#checkKey(objects, key);
      return uploads.create(bucket, key, options);
    });
  }

  async putPart(upload: UploadId, partNumber: number, body: Readable, options: PutOptions): Promise<PartHead> {
    try {
      return await this.#within(upload.bucket, ({ uploads }) => uploads.putPart(upload, partNumber, body, options));
    } finally {
      body.destroy();
    }
  }

  async completeUpload(id: UploadId, named: readonly CompletedPart[], options: CompleteOptions): Promise<ObjectHead> {
    return this.#within(id.bucket, ({ objects, uploads }) =>
      uploads.locks.run(id.uploadId, async () => {
        const generated = objects.index.get(id.key);
        if (generated?.uploadId === id.uploadId) {
          await uploads.remove(id.uploadId);
          return generated.head;
        }
        const upload = uploads.find(id);
        const parts = chooseParts(upload, named, this.#limits.partBytesMin);
        checkCompleteRequest(upload.head, parts, options);
        const path = await objects.newDataPath(id.key);
        const { byteLength, checksums, crc32 } = await uploads.assemble(upload, parts, path, options.signal);
        const head: ObjectHead = {
          ...this.#headOf(id.bucket, id.key, upload.options),
          byteLength,
          etag: multipartEtag(parts),
          checksums,
          checksumType: upload.head.checksumType,
        };
        const check = () => checkCompletedChecksums(checksums, options.expect);
        const object = { head, crc32, uploadId: id.uploadId, bytes: { at: "file", path } } as const;
        await this.#commit(objects, object, options, check);
        await uploads.remove(id.uploadId);
        return head;
      }),
    );
  }

  async abortUpload(id: UploadId): Promise<void> {
    await this.#within(id.bucket, ({ uploads }) =>
      uploads.locks.run(id.uploadId, async () => {
        uploads.find(id);
        await uploads.remove(id.uploadId);
      }),
    );
  }

  async headUpload(id: UploadId): Promise<UploadHead> {
    return this.#bucket(id.bucket).uploads.find(id).head;
  }

  async listParts(id: UploadId, { afterNumber, countMax }: ListPartsOptions): Promise<ItemPage<PartHead>> {
    const { parts } = this.#bucket(id.bucket).uploads.find(id);
    const items: PartHead[] = [];
    // Iterates over all possible part numbers. This costs no more than sorting the parts of a page.
    for (let number = afterNumber + 1; number <= partNumberMax; number += 1) {
      const part = parts.get(number);
      if (part === undefined) continue;
      if (items.length >= countMax) return { items, isTruncated: true };
      items.push(part);
    }
    return { items, isTruncated: false };
  }

  async listUploads(bucket: string, options: ListUploadsOptions): Promise<ItemPage<UploadHead>> {
    return this.#bucket(bucket).uploads.page(options);
  }

  *kept(): Generator<StoredItemUsage> {
    for (const { objects, uploads } of this.#buckets.values()) {
      for (const { head } of objects.index.all()) {
        yield { headers: head.headers, byteLength: head.byteLength, fileCount: 1 };
      }
      yield* uploads.kept();
    }
  }

  /** Schedules the next removal of expired uploads. The clock's timer does not keep the process alive. */
  #expireLater(): void {
    this.#expiry = this.#clock.timer(expiryIntervalMs, () => {
      this.#upkeep.run(async (closing) => {
        for (const { uploads } of this.#buckets.values()) {
          closing.throwIfAborted();
          await uploads.expire();
        }
      });
      this.#expireLater();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#expiry?.[Symbol.dispose]();
    await this.#upkeep[Symbol.asyncDispose]();
    await this.#pool[Symbol.asyncDispose]();
    await this.#files[Symbol.asyncDispose]();
    for (const { objects } of this.#buckets.values()) await objects[Symbol.asyncDispose]();
  }
}

/** Resolves with true if a folder contains a bucket's description or objects. */
async function isBucketFolder(folder: string): Promise<boolean> {
  if ((await readdir(folder)).includes("bucket.json")) return true;
  const objects = await readdir(join(folder, "objects")).catch(() => []);
  return objects.length > 0;
}
