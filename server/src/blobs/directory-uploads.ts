import { createHash, randomBytes } from "node:crypto";
import { link, mkdir, open, readdir, rename, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { AwsError, type Clock, type Logger } from "../base/index.ts";
import { checkBody, diskError, digestsFor, writeBodyFile, writeBodyRegion, type WrittenBody } from "./body-file.ts";
import { digestOf } from "./checksum.ts";
import { isAside, moveAside, readSealed, sealedText, setAside } from "./damaged-file.ts";
import { noSuchBucket, syncFolder, writeFileDurably } from "./directory-bucket.ts";
import type { HashPool } from "./hash-pool.ts";
import { joinedName, JoinedParts } from "./joined-parts.ts";
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
  /** The file that holds its bytes: its own, or that of joined parts. */
  readonly data: string;
  /** Where in that file; absent: from its beginning. */
  readonly offset?: number;
}

export interface Upload {
  readonly head: UploadHead;
  readonly options: UploadOptions;
  readonly parts: Map<number, StoredPart>;
  /** Begun in an earlier life: a power failure may have taken what was not synced, and parts are looked at before they are joined. */
  readonly isResumed: boolean;
  readonly joined: JoinedParts;
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
 * file. An upload goes on after a restart. Parts are not synced: the object that they are joined to is, and a part of an earlier life,
 * which a power failure may have damaged, is held to its ETag first. A folder that goes is moved away first:
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
  async load(bucket: string, logger: Logger): Promise<void> {
    await mkdir(this.#folder, { recursive: true });
    for (const entry of await readdir(this.#folder, { withFileTypes: true })) {
      const { name } = entry;
      if (isAside(name)) continue;
      const folder = join(this.#folder, name);
      const names = entry.isDirectory() ? await readdir(folder) : null;
      if (names === null) {
        await setAside(folder, "something lies among the uploads that was put there by nobody", "", logger);
        continue;
      }
      if (!names.includes("upload.json")) {
        await rm(folder, { recursive: true, force: true });
        continue;
      }
      const upload = await this.#readUpload(folder, bucket, name, names, logger);
      if (upload === null) continue;
      if (this.#isExpired(upload.head)) await rm(folder, { recursive: true, force: true });
      else this.#uploads.set(name, upload);
    }
  }

  /** Null where it is damaged: it is set aside whole then. */
  async #readUpload(
    folder: string,
    bucket: string,
    uploadId: string,
    names: readonly string[],
    logger: Logger,
  ): Promise<Upload | null> {
    let record: UploadRecord;
    try {
      record = await this.#readDescription<UploadRecord>(join(folder, "upload.json"), logger);
      if (record.head.uploadId !== uploadId) throw new Error("it is another upload's");
    } catch (error) {
      await setAside(folder, "an unfinished upload is damaged", String(error), logger);
      return null;
    }
    const upload: Upload = {
      head: { ...record.head, bucket },
      options: record.options,
      parts: new Map(),
      isResumed: true,
      joined: this.#joinedParts(true),
    };
    const damaged = new Set<string>();
    for (const name of names.filter((file) => /^\d+\.json$/.test(file))) {
      try {
        const part = await this.#readDescription<StoredPart>(join(folder, name), logger);
        if (`${part.partNumber}.json` !== name || !names.includes(part.data)) throw new Error("it names no file");
        upload.parts.set(part.partNumber, part);
      } catch (error) {
        damaged.add(name.slice(0, -".json".length));
        await setAside(join(folder, name), "a part of an unfinished upload is damaged", String(error), logger);
      }
    }
    const kept = new Set([...upload.parts.values()].map((part) => part.data));
    for (const name of names) {
      if (/^(?:upload|\d+)\.json$/.test(name) || kept.has(name) || isAside(name)) continue;
      if (damaged.has(name.split(".")[0] ?? "")) await moveAside(join(folder, name));
      else await rm(join(folder, name), { recursive: true, force: true });
    }
    return upload;
  }

  async #readDescription<Content>(path: string, logger: Logger): Promise<Content> {
    const { content, isRepaired } = await readSealed<Content>(path);
    if (isRepaired) {
      logger.error("an unfinished upload's description had a flipped bit and is repaired", { path });
      await writeFileDurably(`${path}.tmp`, path, sealedText(content));
    }
    return content;
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
      await writeFileDurably(join(folder, "upload.tmp"), join(folder, "upload.json"), sealedText({ head, options }));
      await syncFolder(this.#folder);
      // Another bucket of this name may have the folder by now.
      if (this.#isClosed) throw noSuchBucket();
    } catch (cause) {
      await rm(folder, { recursive: true, force: true });
      throw diskError(cause);
    }
    this.#uploads.set(uploadId, {
      head,
      options,
      parts: new Map(),
      isResumed: false,
      joined: this.#joinedParts(false),
    });
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
    using place = upload.joined.place(partNumber, options.expect?.byteLength, this.#limits.partBytesMin);
    const data = place === null ? `${partNumber}.${randomBytes(9).toString("base64url")}` : joinedName;
    const folder = join(this.#folder, id.uploadId);
    const path = join(folder, data);
    const wants = { digests: digestsFor({ algorithms, announced: () => ({}) }), signal: options.signal };
    const region = place === null ? null : { offset: place.offset, byteLength: options.expect?.byteLength ?? 0 };
    const written =
      region === null
        ? await writeBodyFile(path, body, this.#pool, { ...wants, bytesMax: this.#limits.objectBytesMax })
        : await writeBodyRegion(path, region, body, this.#pool, wants);
    const { md5 = "", ...rest } = written.digests;
    try {
      checkBody(written, options.expect);
      const kept = wanted === null ? {} : { [wanted]: rest[wanted] ?? "" };
      const etag = `"${Buffer.from(md5, "base64").toString("hex")}"`;
      const lastModifiedMs = this.#clock.epochMs();
      const { byteLength } = written;
      const head = { partNumber, byteLength, etag, lastModifiedMs, checksums: kept };
      const part = place === null ? { ...head, data } : { ...head, data, offset: place.offset };
      await this.locks.run(id.uploadId, async () => {
        const before = this.find(id).parts.get(partNumber);
        const target = join(folder, `${partNumber}.json`);
        const aside = join(folder, `${partNumber}.${randomBytes(9).toString("base64url")}.tmp`);
        await writeFile(aside, sealedText(part));
        await rename(aside, target);
        upload.parts.set(partNumber, part);
        place?.keep();
        if (before !== undefined && before.data !== joinedName) await rm(join(folder, before.data), { force: true });
      });
      return part;
    } catch (cause) {
      if (place === null) await rm(path, { force: true });
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
        throw invalidPart();
      }
      checkNamed(upload.head, part);
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

  async #checkParts(upload: Upload, parts: readonly StoredPart[], signal: AbortSignal): Promise<void> {
    const folder = join(this.#folder, upload.head.uploadId);
    for (const part of parts) {
      signal.throwIfAborted();
      using hash = this.#pool.follow(join(folder, part.data), ["md5"], part.offset ?? 0);
      const { size } = await stat(join(folder, part.data));
      const isThere = size >= (part.offset ?? 0) + part.byteLength;
      const { md5 = "" } = await hash.end(isThere ? part.byteLength : 0);
      if (Buffer.from(md5, "base64").toString("hex") === unquoted(part.etag)) continue;
      upload.parts.delete(part.partNumber);
      throw invalidPart();
    }
  }

  /** Joins parts into `path`; syncing it is the caller's. Hashed again only for a whole-object checksum. */
  async assemble(
    upload: Upload,
    parts: readonly StoredPart[],
    path: string,
    signal: AbortSignal,
  ): Promise<{ byteLength: number; checksums: Record<string, string> }> {
    const { checksumAlgorithm: algorithm, checksumType } = upload.head;
    if (upload.isResumed) await this.#checkParts(upload, parts, signal);
    const whole = algorithm !== null && checksumType === "FULL_OBJECT" ? [algorithm] : [];
    const folder = join(this.#folder, upload.head.uploadId);
    if (upload.joined.close(parts)) return await this.#takeJoined(upload, parts, path, whole);
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
    return { byteLength: written.byteLength, checksums: checksumsOf(upload, parts, written.digests) };
  }

  /** The parts lie as the object will: their file gets the object's name too, and is the object's alone when the upload is removed. */
  async #takeJoined(
    upload: Upload,
    parts: readonly StoredPart[],
    path: string,
    whole: readonly ChecksumAlgorithm[],
  ): Promise<{ byteLength: number; checksums: Record<string, string> }> {
    const byteLength = parts.reduce((sum, part) => sum + part.byteLength, 0);
    await link(join(this.#folder, upload.head.uploadId, joinedName), path);
    try {
      // A part that was refused may have left bytes behind the last one.
      await truncate(path, byteLength);
      if (whole.length === 0) return { byteLength, checksums: checksumsOf(upload, parts, {}) };
      using hash = this.#pool.follow(path, whole, 0);
      return { byteLength, checksums: checksumsOf(upload, parts, await hash.end(byteLength)) };
    } catch (cause) {
      await rm(path, { force: true });
      throw diskError(cause);
    }
  }
}

function checksumsOf(
  { head }: Upload,
  parts: readonly StoredPart[],
  whole: WrittenBody["digests"],
): Record<string, string> {
  const { checksumAlgorithm: algorithm } = head;
  return algorithm === null ? {} : { [algorithm]: whole[algorithm] ?? compositeChecksum(algorithm, parts) };
}

async function* partBytes(folder: string, parts: readonly StoredPart[]): AsyncGenerator<Buffer> {
  for (const part of parts) {
    await using file = await open(join(folder, part.data), "r");
    for (let at = 0; at < part.byteLength;) {
      const buffer = Buffer.allocUnsafe(Math.min(2 ** 21, part.byteLength - at));
      const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, (part.offset ?? 0) + at);
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

/** A composite checksum is made of those that the client names. */
function checkNamed({ checksumAlgorithm, checksumType }: UploadHead, part: CompletedPart): void {
  if (checksumAlgorithm === null || checksumType !== "COMPOSITE" || checksumAlgorithm in part.checksums) return;
  throw new AwsError(
    "InvalidRequest",
    `The upload was created using a ${checksumAlgorithm} checksum. The complete request must include the checksum for each part. It was missing for part ${part.partNumber} in the request.`,
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

function invalidPart(): AwsError {
  return new AwsError(
    "InvalidPart",
    "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
  );
}

const unquoted = (etag: string) => etag.replaceAll('"', "");
