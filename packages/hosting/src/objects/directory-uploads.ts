import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { AwsError, type Clock, KeyedLock, type Logger } from "@galatea/base";
import { assembleParts } from "./assembled-parts.ts";
import { checkBody, toStoreError, requiredDigests, writeBodyFile, writeBodyRegion } from "./body-file.ts";
import { noSuchUpload } from "./completed-parts.ts";
import { isQuarantined, checksummedText, quarantineFile } from "./damaged-file.ts";
import { noSuchBucket } from "./directory-bucket.ts";
import { createDurably, syncFolder } from "./durable-file.ts";
import type { HashPool } from "./hash-pool.ts";
import { joinedFileName, JoinedParts } from "./joined-parts.ts";
import { compareKeys } from "./object-index.ts";
import { partNumberMax } from "./object-store.ts";
import type {
  StoredItemUsage,
  ListUploadsOptions,
  ItemPage,
  PartHead,
  PutOptions,
  UploadHead,
  UploadId,
  UploadOptions,
} from "./object-store.ts";
import { SortedList } from "./sorted-list.ts";
import { readUpload, type StoredPart, type MultipartUpload } from "./stored-upload.ts";

export interface UploadLimits {
  readonly objectBytesMax: number;
  readonly partBytesMin: number;
  readonly uploadsMax: number;
  readonly uploadAgeMsMax: number;
}

/**
 * Unfinished multipart uploads of one bucket. Each upload has a folder with `upload.json` and, for every part, a
 * `<number>.json` that names the data file. An upload continues after a restart. Parts are not synced, only the
 * completed object is. Parts of a previous run may be damaged by a power failure, so they are first checked against
 * their ETags. A folder is renamed before it is removed: concurrent writes then fail, and no reader sees a partly
 * removed upload.
 */
export class DirectoryUploads {
  readonly #folder: string;
  readonly #trash: string;
  readonly #pool: HashPool;
  readonly #clock: Clock;
  readonly #limits: UploadLimits;
  readonly #uploads = new Map<string, MultipartUpload>();
  /** The uploads in the order of listings. */
  readonly #sorted = new SortedList<UploadHead>(
    (a, b) => compareKeys(a.key, b.key) || (a.uploadId < b.uploadId ? -1 : Number(a.uploadId > b.uploadId)),
  );
  #isClosed = false;
  readonly locks = new KeyedLock();

  /** `trash`: a folder on the same file system for removed uploads. Its owner deletes the content. */
  constructor(folder: string, tools: { trash: string; pool: HashPool; clock: Clock; limits: UploadLimits }) {
    this.#folder = folder;
    this.#trash = tools.trash;
    this.#pool = tools.pool;
    this.#clock = tools.clock;
    this.#limits = tools.limits;
  }

  /**
   * Reads the uploads. Removes uploads that are older than `uploadAgeMsMax`, and those whose creation or removal was
   * interrupted.
   */
  async load(bucket: string, isCompleted: (head: UploadHead) => boolean, logger: Logger): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    for (const entry of await readdir(this.#folder, { withFileTypes: true })) {
      const { name } = entry;
      if (isQuarantined(name)) continue;
      const folder = join(this.#folder, name);
      const names = entry.isDirectory() ? await readdir(folder) : null;
      if (names === null) {
        await quarantineFile(folder, "an unknown file is among the uploads", "", logger);
        continue;
      }
      if (!names.includes("upload.json")) {
        await rm(folder, { recursive: true, force: true });
        continue;
      }
      const upload = await readUpload(
        { folder, bucket, uploadId: name, names, joined: this.#joinedParts(true) },
        logger,
      );
      if (upload === null) continue;
      if (this.#isExpired(upload.head) || isCompleted(upload.head)) await rm(folder, { recursive: true, force: true });
      else this.#uploads.set(name, upload);
    }
    this.#sorted.load([...this.#uploads.values()].map(({ head }) => head));
  }

  #joinedParts(isClosed: boolean): JoinedParts {
    return new JoinedParts({ byteLengthMax: this.#limits.objectBytesMax, isClosed });
  }

  async create(bucket: string, key: string, options: UploadOptions): Promise<UploadHead> {
    if (this.#uploads.size >= this.#limits.uploadsMax) {
      throw new AwsError("SlowDown", `${this.#limits.uploadsMax} uploads of this bucket are unfinished`, {
        statusFallback: 503,
      });
    }
    const startedMs = this.#clock.epochMs();
    const uploadId = `${Math.floor(startedMs).toString(16).padStart(12, "0")}${randomBytes(18).toString("base64url")}`;
    const { checksumAlgorithm, checksumType } = options;
    const head = { bucket, key, uploadId, startedMs, checksumAlgorithm, checksumType };
    const folder = join(this.#folder, uploadId);
    try {
      await mkdir(folder);
      const description = Buffer.from(checksummedText({ head, options }));
      await createDurably(join(folder, "upload.json"), [description], [() => syncFolder(this.#folder)]);
      // The bucket may have been deleted, and a new bucket with this name may own the folder.
      if (this.#isClosed) throw noSuchBucket();
    } catch (cause) {
      await rm(folder, { recursive: true, force: true });
      throw toStoreError(cause);
    }
    this.#uploads.set(uploadId, {
      head,
      options,
      parts: new Map(),
      isResumed: false,
      joined: this.#joinedParts(false),
    });
    this.#sorted.insert(head);
    return head;
  }

  find(id: UploadId): MultipartUpload {
    const upload = this.#uploads.get(id.uploadId);
    if (upload === undefined || upload.head.key !== id.key) throw noSuchUpload();
    return upload;
  }

  page({ prefix, after, countMax }: ListUploadsOptions): ItemPage<UploadHead> {
    const isBefore = (head: UploadHead) => {
      if (compareKeys(head.key, prefix) < 0) return true;
      if (after === null) return false;
      const order = compareKeys(head.key, after.key);
      return order < 0 || (order === 0 && (after.uploadId === null || head.uploadId <= after.uploadId));
    };
    const items: UploadHead[] = [];
    for (let at = this.#sorted.firstNot(isBefore); at < this.#sorted.length; at += 1) {
      const head = this.#sorted.at(at);
      if (head === undefined || !head.key.startsWith(prefix)) break;
      if (items.length >= countMax) return { items, isTruncated: true };
      items.push(head);
    }
    return { items, isTruncated: false };
  }

  async putPart(id: UploadId, partNumber: number, body: Readable, options: PutOptions): Promise<PartHead> {
    const upload = this.find(id);
    try {
      return await this.#writePart(upload, partNumber, body, options);
    } catch (cause) {
      if (cause instanceof AwsError || this.#uploads.get(id.uploadId) === upload) throw cause;
      throw noSuchUpload(cause);
    }
  }

  async #writePart(
    upload: MultipartUpload,
    partNumber: number,
    body: Readable,
    options: PutOptions,
  ): Promise<PartHead> {
    const id = upload.head;
    if (!Number.isInteger(partNumber) || partNumber < 1 || partNumber > partNumberMax) {
      body.destroy();
      throw new AwsError("InvalidArgument", `Part number must be an integer between 1 and ${partNumberMax}, inclusive`);
    }
    const { checksumAlgorithm } = upload.head;
    const algorithms = [
      ...(options.expect?.algorithms ?? []),
      ...(checksumAlgorithm === null ? [] : [checksumAlgorithm]),
    ];
    using slot = upload.joined.slot(partNumber, options.expect?.byteLength, this.#limits.partBytesMin);
    const data = slot === null ? `${partNumber}.${randomBytes(9).toString("base64url")}` : joinedFileName;
    const folder = join(this.#folder, id.uploadId);
    const path = join(folder, data);
    const { signal, released } = options;
    const digests = requiredDigests({ algorithms, announced: () => ({}) });
    const bodyOptions = { digests, signal, released };
    const region = slot === null ? null : { offset: slot.offset, byteLength: options.expect?.byteLength ?? 0 };
    const written =
      region === null
        ? await writeBodyFile(path, body, this.#pool, { ...bodyOptions, bytesMax: this.#limits.objectBytesMax })
        : await writeBodyRegion(path, region, body, this.#pool, bodyOptions);
    const { md5 = "", crc32 = "", ...rest } = written.digests;
    try {
      checkBody(written, options.expect);
      const kept =
        checksumAlgorithm === null ? {} : { [checksumAlgorithm]: { ...rest, crc32 }[checksumAlgorithm] ?? "" };
      const etag = `"${Buffer.from(md5, "base64").toString("hex")}"`;
      const lastModifiedMs = this.#clock.epochMs();
      const { byteLength } = written;
      const head = { partNumber, byteLength, etag, lastModifiedMs, checksums: kept };
      const stored = { ...head, data, crc32 };
      const part = slot === null ? stored : { ...stored, offset: slot.offset };
      await this.locks.run(id.uploadId, async () => {
        const before = this.find(id).parts.get(partNumber);
        const target = join(folder, `${partNumber}.json`);
        const aside = join(folder, `${partNumber}.${randomBytes(9).toString("base64url")}.tmp`);
        await writeFile(aside, checksummedText(part));
        await rename(aside, target);
        upload.parts.set(partNumber, part);
        slot?.keep();
        if (before !== undefined && before.data !== joinedFileName)
          await rm(join(folder, before.data), { force: true });
      });
      return part;
    } catch (cause) {
      if (slot === null) await rm(path, { force: true });
      throw toStoreError(cause);
    }
  }

  *kept(): Generator<StoredItemUsage> {
    for (const { options, parts } of this.#uploads.values()) {
      const byteLength = [...parts.values()].reduce((sum, part) => sum + part.byteLength, 0);
      yield { headers: options.headers ?? {}, byteLength, fileCount: 1 + parts.size };
    }
  }

  async remove(uploadId: string): Promise<void> {
    const upload = this.#uploads.get(uploadId);
    if (upload === undefined) return;
    this.#uploads.delete(uploadId);
    this.#sorted.delete(upload.head);
    const trash = join(this.#trash, randomBytes(9).toString("hex"));
    await rename(join(this.#folder, uploadId), trash);
    await syncFolder(this.#folder);
    await rm(trash, { recursive: true, force: true });
  }

  /** Removes uploads older than `uploadAgeMsMax`. */
  async expire(): Promise<void> {
    for (const { uploadId, ...head } of [...this.#uploads.values()].map((upload) => upload.head)) {
      if (!this.#isExpired(head)) continue;
      await this.locks.run(uploadId, () => this.remove(uploadId));
    }
  }

  #isExpired({ startedMs }: Pick<UploadHead, "startedMs">): boolean {
    return this.#clock.epochMs() - startedMs > this.#limits.uploadAgeMsMax;
  }

  /** Prevents new uploads after the bucket's deletion. The caller removes the folder. */
  close(): void {
    this.#isClosed = true;
    this.#uploads.clear();
    this.#sorted.load([]);
  }

  /** Joins the parts that `chooseParts` returned into the object's file at `path`. The caller syncs the file. */
  async assemble(upload: MultipartUpload, parts: readonly StoredPart[], path: string, signal: AbortSignal) {
    const folder = join(this.#folder, upload.head.uploadId);
    const bytesMax = this.#limits.objectBytesMax;
    return assembleParts({ upload, parts, folder, path, pool: this.#pool, bytesMax, signal });
  }
}
