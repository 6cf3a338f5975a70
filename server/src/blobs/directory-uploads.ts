import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readFile, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { AwsError, type Clock } from "../base/index.ts";
import { checkBody, diskError, digestsFor, writeBodyFile } from "./body-file.ts";
import { digestOf } from "./checksum.ts";
import { noSuchBucket, syncFolder, writeFileDurably } from "./directory-bucket.ts";
import type { HashPool } from "./hash-pool.ts";
import { KeyedLock } from "./keyed-lock.ts";
import { partNumberMax } from "./object-store.ts";
import type {
  BodyExpectation,
  ChecksumAlgorithm,
  CompletedPart,
  CompleteOptions,
  PartHead,
  PutOptions,
  UploadHead,
  UploadId,
  UploadOptions,
} from "./object-store.ts";

interface StoredPart extends PartHead {
  readonly data: string;
}

export interface Upload {
  readonly head: UploadHead;
  readonly options: UploadOptions;
  readonly parts: Map<number, StoredPart>;
}

export interface UploadLimits {
  readonly objectBytesMax: number;
  readonly partBytesMin: number;
  readonly uploadsMax: number;
  readonly uploadAgeMsMax: number;
}

interface UploadRecord {
  readonly head: UploadHead;
  readonly options: UploadOptions;
}

/**
 * Unfinished multipart uploads of one bucket: a folder each, `upload.json` and for every part `<number>.json` naming its data
 * file. Parts are durable when acknowledged, so that an upload goes on after a restart. A folder that goes is moved away first:
 * what is being written in it fails, or ends with it, and is never met half removed.
 */
export class DirectoryUploads {
  readonly #folder: string;
  readonly #trash: string;
  readonly #pool: HashPool;
  readonly #clock: Clock;
  readonly #limits: UploadLimits;
  readonly #uploads = new Map<string, Upload>();
  #isClosed = false;
  readonly locks = new KeyedLock();

  /** `trash` is a folder of the same disk, emptied by its owner. */
  constructor(folder: string, tools: { trash: string; pool: HashPool; clock: Clock; limits: UploadLimits }) {
    this.#folder = folder;
    this.#trash = tools.trash;
    this.#pool = tools.pool;
    this.#clock = tools.clock;
    this.#limits = tools.limits;
  }

  /** Uploads that nobody finished within `uploadAgeMsMax`, and those whose creation was interrupted, are removed. */
  async load(bucket: string): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const folder = join(this.#folder, name);
      const names = await readdir(folder);
      const record = names.includes("upload.json")
        ? (JSON.parse(await readFile(join(folder, "upload.json"), "utf8")) as UploadRecord)
        : null;
      if (record === null || this.#isExpired(record.head)) {
        await rm(folder, { recursive: true, force: true });
        continue;
      }
      const upload: Upload = { head: { ...record.head, bucket }, options: record.options, parts: new Map() };
      for (const part of names.filter((file) => /^\d+\.json$/.test(file))) {
        const stored = JSON.parse(await readFile(join(folder, part), "utf8")) as StoredPart;
        if (names.includes(stored.data)) upload.parts.set(stored.partNumber, stored);
      }
      const kept = new Set([...upload.parts.values()].map((part) => part.data));
      const leftovers = names.filter((file) => !file.endsWith(".json") && !kept.has(file));
      await Promise.all(leftovers.map((file) => rm(join(folder, file), { force: true })));
      this.#uploads.set(name, upload);
    }
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
      await writeFileDurably(
        join(folder, "upload.tmp"),
        join(folder, "upload.json"),
        JSON.stringify({ head, options }),
      );
      await syncFolder(this.#folder);
      // Another bucket of this name may have the folder by now.
      if (this.#isClosed) throw noSuchBucket();
    } catch (cause) {
      await rm(folder, { recursive: true, force: true });
      throw diskError(cause);
    }
    this.#uploads.set(uploadId, { head, options, parts: new Map() });
    return head;
  }

  find(id: UploadId): Upload {
    const upload = this.#uploads.get(id.uploadId);
    if (upload === undefined || upload.head.key !== id.key) throw noSuchUpload();
    return upload;
  }

  list(): UploadHead[] {
    return [...this.#uploads.values()].map((upload) => upload.head);
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

  async #writePart(upload: Upload, partNumber: number, body: Readable, options: PutOptions): Promise<PartHead> {
    const id = upload.head;
    if (!Number.isInteger(partNumber) || partNumber < 1 || partNumber > partNumberMax) {
      body.destroy();
      throw new AwsError("InvalidArgument", `Part number must be an integer between 1 and ${partNumberMax}, inclusive`);
    }
    const wanted = upload.head.checksumAlgorithm;
    const algorithms = [...(options.expect?.algorithms ?? []), ...(wanted === null ? [] : [wanted])];
    const data = `${partNumber}.${randomBytes(9).toString("base64url")}`;
    const folder = join(this.#folder, id.uploadId);
    const written = await writeBodyFile(join(folder, data), body, this.#pool, {
      digests: digestsFor({ algorithms, announced: () => ({}) }),
      signal: options.signal,
      bytesMax: this.#limits.objectBytesMax,
    });
    const { md5 = "", ...rest } = written.digests;
    try {
      checkBody(written, options.expect);
      const kept = wanted === null ? {} : { [wanted]: rest[wanted] ?? "" };
      const etag = `"${Buffer.from(md5, "base64").toString("hex")}"`;
      const lastModifiedMs = this.#clock.epochMs();
      const part = { partNumber, byteLength: written.byteLength, etag, lastModifiedMs, checksums: kept, data };
      await this.locks.run(id.uploadId, async () => {
        const before = this.find(id).parts.get(partNumber);
        const target = join(folder, `${partNumber}.json`);
        await writeFileDurably(join(folder, `${data}.tmp`), target, JSON.stringify(part));
        upload.parts.set(partNumber, part);
        if (before !== undefined) await rm(join(folder, before.data), { force: true });
      });
      return part;
    } catch (cause) {
      await rm(join(folder, data), { force: true });
      throw diskError(cause);
    }
  }

  async remove(uploadId: string): Promise<void> {
    if (!this.#uploads.delete(uploadId)) return;
    const trash = join(this.#trash, randomBytes(9).toString("hex"));
    await rename(join(this.#folder, uploadId), trash);
    await syncFolder(this.#folder);
    await rm(trash, { recursive: true, force: true });
  }

  /** Removes what nobody finished within `uploadAgeMsMax`. */
  async expire(): Promise<void> {
    for (const { uploadId, ...head } of this.list()) {
      if (!this.#isExpired(head)) continue;
      await this.locks.run(uploadId, () => this.remove(uploadId));
    }
  }

  #isExpired({ startedMs }: Pick<UploadHead, "startedMs">): boolean {
    return this.#clock.epochMs() - startedMs > this.#limits.uploadAgeMsMax;
  }

  /** The bucket is deleted: nothing is begun any more; the caller removes the folder. */
  close(): void {
    this.#isClosed = true;
    this.#uploads.clear();
  }

  /** The parts that the client names, checked against those it uploaded. */
  choose(upload: Upload, named: readonly CompletedPart[]): StoredPart[] {
    if (named.length === 0) throw new AwsError("MalformedXML", "You must specify at least one part");
    let before = 0;
    const chosen = named.map((part) => {
      if (part.partNumber <= before) {
        throw new AwsError(
          "InvalidPartOrder",
          "The list of parts was not in ascending order. Parts must be ordered by part number.",
        );
      }
      before = part.partNumber;
      const stored = upload.parts.get(part.partNumber);
      const same = stored !== undefined && unquoted(stored.etag) === unquoted(part.etag);
      const agree =
        same && Object.entries(part.checksums).every(([name, value]) => (stored.checksums[name] ?? value) === value);
      if (!agree) {
        throw new AwsError(
          "InvalidPart",
          "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
        );
      }
      return stored;
    });
    const small = chosen.slice(0, -1).find((part) => part.byteLength < this.#limits.partBytesMin);
    if (small !== undefined) {
      throw new AwsError("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size", {
        members: {
          ProposedSize: small.byteLength,
          MinSizeAllowed: this.#limits.partBytesMin,
          PartNumber: small.partNumber,
        },
      });
    }
    return chosen;
  }

  /** Joins parts into `path`, synced. Hashed again only for a whole-object checksum. */
  async assemble(
    upload: Upload,
    parts: readonly StoredPart[],
    path: string,
    signal: AbortSignal,
  ): Promise<{ byteLength: number; checksums: Record<string, string> }> {
    const { checksumAlgorithm: algorithm, checksumType } = upload.head;
    const whole = algorithm !== null && checksumType === "FULL_OBJECT" ? [algorithm] : [];
    const folder = join(this.#folder, upload.head.uploadId);
    const written = await writeBodyFile(
      path,
      Readable.from(partBytes(folder, parts), { objectMode: true, highWaterMark: 1 }),
      this.#pool,
      {
        digests: whole,
        signal,
        bytesMax: this.#limits.objectBytesMax,
      },
    );
    const checksums =
      algorithm === null ? {} : { [algorithm]: written.digests[algorithm] ?? compositeChecksum(algorithm, parts) };
    return { byteLength: written.byteLength, checksums };
  }
}

async function* partBytes(folder: string, parts: readonly StoredPart[]): AsyncGenerator<Buffer> {
  for (const part of parts) {
    await using file = await open(join(folder, part.data), "r");
    for (let at = 0; at < part.byteLength;) {
      const buffer = Buffer.allocUnsafe(Math.min(2 ** 21, part.byteLength - at));
      const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, at);
      if (bytesRead === 0) throw new Error(`part ${part.partNumber} ended at ${at} of ${part.byteLength} bytes`);
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }
}

/** The checksum of the parts' checksums, with their number. */
function compositeChecksum(algorithm: ChecksumAlgorithm, parts: readonly StoredPart[]): string {
  const all = Buffer.concat(parts.map((part) => Buffer.from(part.checksums[algorithm] ?? "", "base64")));
  return `${digestOf(algorithm, all)}-${parts.length}`;
}

/** Before the parts are joined: whether they make the object that was said. */
export function checkJoined(upload: UploadHead, parts: readonly PartHead[], options: CompleteOptions): void {
  const { checksumType = upload.checksumType, expect } = options;
  if (checksumType !== upload.checksumType) {
    throw new AwsError(
      "InvalidRequest",
      `The upload was created using the ${upload.checksumType} checksum mode. The complete request must use the same checksum mode.`,
    );
  }
  const byteLength = parts.reduce((sum, part) => sum + part.byteLength, 0);
  if (expect?.byteLength === undefined || expect.byteLength === byteLength) return;
  throw new AwsError(
    "InvalidRequest",
    `The provided 'x-amz-mp-object-size' header value ${expect.byteLength} does not match what was computed: ${byteLength}`,
  );
}

export function checkJoinedChecksums(
  checksums: Readonly<Record<string, string>>,
  expect: BodyExpectation | undefined,
): void {
  for (const [name, value] of Object.entries(expect?.announced() ?? {})) {
    if (checksums[name] === undefined || checksums[name] === value) continue;
    throw new AwsError("BadDigest", `The ${name.toUpperCase()} you specified did not match the calculated checksum.`);
  }
}

export function multipartEtag(parts: readonly PartHead[]): string {
  const hash = createHash("md5");
  for (const part of parts) hash.update(Buffer.from(unquoted(part.etag), "hex"));
  return `"${hash.digest("hex")}-${parts.length}"`;
}

function noSuchUpload(cause?: unknown): AwsError {
  const message =
    "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.";
  return new AwsError("NoSuchUpload", message, { cause, statusFallback: 404 });
}

const unquoted = (etag: string) => etag.replaceAll('"', "");
