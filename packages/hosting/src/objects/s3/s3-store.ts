import { createReadStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Readable } from "node:stream";
import {
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectTaggingCommand,
  GetObjectCommand,
  GetObjectTaggingCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  PutObjectTaggingCommand,
  type HeadObjectCommandOutput,
  type PutObjectCommandOutput,
  type _Object as ListedItem,
} from "@aws-sdk/client-s3";
import { AwsError, systemClock, type Logger } from "@galatea/base";
import { checkBody, receiveBody, requiredDigests, type ReceivedBody } from "../body-file.ts";
import { checkBucketName } from "../bucket-name.ts";
import { HashPool } from "../hash-pool.ts";
import { checkDeleteCondition } from "../write-condition.ts";
import type {
  BucketHead,
  BucketStore,
  CompletedPart,
  CompleteOptions,
  DeleteCondition,
  ItemPage,
  ListedObject,
  ListOptions,
  ListPage,
  ListPartsOptions,
  ListUploadsOptions,
  ObjectHead,
  PartHead,
  PutOptions,
  UploadChecksum,
  UploadHead,
  UploadId,
  UploadOptions,
} from "../object-store.ts";
import { compareKeys } from "../object-index.ts";
import { decodeListedKey, describingHeaders, objectHead, withHeaders } from "./object-parameters.ts";
import { shownPage } from "./shown-page.ts";
import {
  S3Connection,
  s3Durations,
  transferLimits,
  type S3Durations,
  type S3StoreAddress,
  type SendCall,
} from "./s3-connection.ts";
import { S3Uploads, type SentBody } from "./s3-uploads.ts";

export interface S3StoreOptions {
  readonly address: S3StoreAddress;
  /**
   * Folder for bodies over 1 MiB until they are sent. It is emptied when the store is opened; only one process may use
   * it at a time.
   */
  readonly folder: string;
  readonly processorCount: number;
  readonly logger: Logger;
  readonly durations?: S3Durations;
}

/** Maximum bytes that S3 accepts in one request. */
const bodyBytesMax = 5 * 2 ** 30;
const hashThreadsMax = 4;
/** Maximum number of keys that are read for one page of a filtered listing. */
const pageKeysMax = 1000;
/** The last Unicode character. Appended to a prefix, it sorts after every key with this prefix. */
const lastCharacter = "\u{10ffff}";

/**
 * Opens a store for the buckets and objects of an S3 service. Makes no call, so opening succeeds even if the service
 * does not respond; calls of the store fail then.
 */
export async function openS3Store(options: S3StoreOptions): Promise<BucketStore> {
  await rm(options.folder, { recursive: true, force: true });
  await mkdir(options.folder, { recursive: true });
  return new S3Store(options);
}

class S3Store implements BucketStore {
  readonly headAgeMsMax = 5000;
  readonly #s3: S3Connection;
  readonly #folder: string;
  readonly #pool: HashPool;
  readonly #logger: Logger;
  readonly #uploads: S3Uploads;

  constructor({ address, folder, processorCount, logger, durations = s3Durations }: S3StoreOptions) {
    this.#s3 = new S3Connection(address, { durations, logger });
    this.#folder = folder;
    this.#logger = logger;
    this.#pool = new HashPool(systemClock, Math.min(hashThreadsMax, Math.ceil(processorCount / 2)));
    this.#uploads = new S3Uploads(this.#s3, { receive: (body, options) => this.#receive(body, options) });
  }

  async buckets(): Promise<readonly BucketHead[]> {
    const found: BucketHead[] = [];
    let ContinuationToken: string | undefined;
    do {
      const command = new ListBucketsCommand({ ContinuationToken });
      const page = await this.#s3.repeatable((client, options) => client.send(command, options));
      for (const { Name = "", CreationDate } of page.Buckets ?? []) {
        found.push({ bucket: Name, createdMs: CreationDate?.getTime() ?? 0 });
      }
      ContinuationToken = page.ContinuationToken;
    } while (ContinuationToken !== undefined);
    return found.toSorted((a, b) => (a.bucket < b.bucket ? -1 : 1));
  }

  async headBucket(bucket: string): Promise<Pick<BucketHead, "bucket">> {
    const command = new HeadBucketCommand({ Bucket: bucket });
    await this.#s3.repeatable((client, options) => client.send(command, options), { absentCode: "NoSuchBucket" });
    return { bucket };
  }

  async createBucket(bucket: string): Promise<Pick<BucketHead, "bucket">> {
    checkBucketName(bucket);
    const { region } = this.#s3;
    // S3 rejects us-east-1 as a location constraint.
    const constraint = region === "us-east-1" ? {} : { LocationConstraint: region as "eu-central-1" };
    const command = new CreateBucketCommand({
      Bucket: bucket,
      ...(region === "us-east-1" ? {} : { CreateBucketConfiguration: constraint }),
    });
    await this.#s3.once((client, options) => client.send(command, options));
    return { bucket };
  }

  async deleteBucket(bucket: string): Promise<void> {
    const command = new DeleteBucketCommand({ Bucket: bucket });
    await this.#s3.once((client, options) => client.send(command, options));
  }

  async head(bucket: string, key: string): Promise<ObjectHead> {
    return this.#head(bucket, key, undefined);
  }

  async #head(bucket: string, key: string, etag: string | undefined): Promise<ObjectHead> {
    const command = new HeadObjectCommand({ Bucket: bucket, Key: key, ChecksumMode: "ENABLED", IfMatch: etag });
    const output = await this.#s3.repeatable((client, options) => client.send(command, options));
    return this.#described(bucket, key, output.ContentLength ?? 0, output);
  }

  /** Converts a response to a head. The response has only the number of tags, so the tags need another call. */
  async #described(
    bucket: string,
    key: string,
    byteLength: number,
    output: Omit<HeadObjectCommandOutput, "$metadata">,
  ): Promise<ObjectHead> {
    let tagging: string | null = null;
    if ((output.TagCount ?? 0) > 0) {
      const command = new GetObjectTaggingCommand({ Bucket: bucket, Key: key });
      const { TagSet = [] } = await this.#s3.repeatable((client, options) => client.send(command, options));
      tagging = new URLSearchParams(
        TagSet.map(({ Key = "", Value = "" }): [string, string] => [Key, Value]),
      ).toString();
    }
    return objectHead({ bucket, key, byteLength }, output, tagging);
  }

  async get(bucket: string, key: string, range?: { start: number; end: number }) {
    if (range !== undefined && range.end <= range.start) {
      const head = await this.head(bucket, key);
      if (range.start < 0 || range.end < range.start || range.end > head.byteLength) throw invalidRange();
      return { head, body: Readable.from([]) };
    }
    const command = new GetObjectCommand({
      Bucket: bucket,
      Key: key,
      ChecksumMode: "ENABLED",
      Range: range === undefined ? undefined : `bytes=${range.start}-${range.end - 1}`,
    });
    const output = await this.#s3.repeatable((client, options) => client.send(command, options));
    const body = output.Body as Readable;
    try {
      const total = /\/(\d+)$/.exec(output.ContentRange ?? "")?.[1];
      const byteLength = total === undefined ? (output.ContentLength ?? 0) : Number(total);
      if (range !== undefined && (total === undefined || range.end > byteLength)) throw invalidRange();
      const head = await this.#described(bucket, key, byteLength, output);
      body.once("error", (error) => {
        if (error.name === "AbortError") return;
        this.#logger.error("an object's bytes ended early", { bucket, key, reason: String(error) });
      });
      return { head, body };
    } catch (cause) {
      body.on("error", () => undefined).destroy();
      throw cause;
    }
  }

  async put(bucket: string, key: string, body: Readable, options: PutOptions): Promise<ObjectHead> {
    await using received = await this.#receive(body, options);
    const { ifMatch: IfMatch, ifNoneMatch: IfNoneMatch } = options.condition ?? {};
    const send: SendCall<PutObjectCommandOutput> = (client, each) => {
      const command = new PutObjectCommand({
        Bucket: bucket,
        Key: key,
        Body: received.bytes(),
        ContentLength: received.byteLength,
        ContentMD5: received.md5,
        IfMatch,
        IfNoneMatch,
      });
      return client.send(withHeaders(command, { ...describingHeaders(options), ...received.checksumHeaders }), each);
    };
    const limits = {
      ...transferLimits(bucket, received.byteLength, options.signal),
      absentCode: "NoSuchBucket",
    };
    const { ETag } = await this.#s3[options.condition === undefined ? "repeatable" : "once"](send, limits);
    return this.#written(bucket, key, ETag, {
      byteLength: received.byteLength,
      contentType: options.contentType ?? "binary/octet-stream",
      headers: options.headers ?? {},
      checksums: received.checksums,
    });
  }

  /**
   * Resolves with the head of a written object. Reads the head from the service, because only the service knows the
   * date. If the object no longer has the written ETag, builds the head from `known`.
   */
  async #written(
    bucket: string,
    key: string,
    etag: string | undefined,
    known: Pick<ObjectHead, "byteLength" | "contentType" | "headers" | "checksums">,
  ): Promise<ObjectHead> {
    try {
      return await this.#head(bucket, key, etag);
    } catch (cause) {
      // The write has succeeded, even if the object was replaced or deleted since.
      if (!(cause instanceof AwsError)) throw cause;
      return { bucket, key, etag: etag ?? "", lastModifiedMs: systemClock.epochMs(), ...known };
    }
  }

  /**
   * Receives a complete body and checks it before it is sent: S3 needs the length in advance, and a wrong body must not
   * become an object.
   */
  async #receive(body: Readable, options: PutOptions): Promise<SentBody> {
    const path = join(this.#folder, randomBytes(12).toString("hex"));
    let received: ReceivedBody;
    try {
      const { signal, released, expect } = options;
      const desired = { digests: requiredDigests(expect), signal, released, bytesMax: bodyBytesMax };
      received = await receiveBody(path, body, this.#pool, desired);
    } finally {
      body.destroy();
    }
    try {
      checkBody(received, options.expect);
      options.signal.throwIfAborted();
    } catch (cause) {
      await rm(path, { force: true });
      throw cause;
    }
    const { chunks, byteLength } = received;
    const { md5 = "", ...digests } = received.digests;
    const announced = options.expect?.announced() ?? {};
    const isOfSignature = "signedSha256" in announced && !("sha256" in announced);
    const kept = (options.expect?.algorithms ?? []).filter((name) => name !== "sha256" || !isOfSignature);
    // S3 accepts only one checksum for an object.
    const checksums = Object.fromEntries(kept.slice(0, 1).map((name) => [name, digests[name] ?? ""]));
    const checksumHeaders = Object.fromEntries(
      Object.entries(checksums).map(([name, value]) => [`x-amz-checksum-${name}`, value]),
    );
    const complete = chunks === null ? null : Buffer.concat(chunks);
    for (const chunk of chunks ?? []) options.released?.(chunk);
    let file: Readable | null = null;
    return {
      byteLength,
      md5,
      checksums,
      checksumHeaders,
      bytes: () => {
        file?.destroy();
        return complete ?? (file = createReadStream(path));
      },
      async [Symbol.asyncDispose]() {
        file?.destroy();
        await rm(path, { force: true });
      },
    };
  }

  async delete(bucket: string, key: string, condition?: DeleteCondition): Promise<void> {
    let etag = condition?.ifMatch;
    if (condition !== undefined) {
      // Many S3 services compare only ETags. The other conditions are checked here, and the object is then deleted by
      // its ETag.
      const before = await this.head(bucket, key).catch((error: unknown) => {
        if (error instanceof AwsError && error.code === "NoSuchKey") return undefined;
        throw error;
      });
      checkDeleteCondition(before, condition);
      if (before === undefined) return;
      etag = before.etag;
    }
    const command = new DeleteObjectCommand({ Bucket: bucket, Key: key, IfMatch: etag });
    const method = condition === undefined ? "repeatable" : "once";
    await this.#s3[method]((client, options) => client.send(command, options), { absentCode: "NoSuchBucket" });
  }

  async list(bucket: string, options: ListOptions): Promise<ListPage> {
    const { prefix, delimiter, startAfter, isListed } = options;
    const isGroup = delimiter !== "" && startAfter.startsWith(prefix) && startAfter.endsWith(delimiter);
    const begin = { ...options, startAfter: startAfter + (isGroup ? lastCharacter : "") };
    if (isListed === undefined) return await this.#listPage(bucket, begin);
    const page = await this.#listPage(bucket, { ...begin, delimiter: "", keysMax: pageKeysMax });
    return shownPage(page, { ...options, isListed });
  }

  async #listPage(bucket: string, { prefix, delimiter, startAfter, keysMax }: ListOptions): Promise<ListPage> {
    const command = new ListObjectsV2Command({
      Bucket: bucket,
      Prefix: prefix,
      Delimiter: delimiter === "" ? undefined : delimiter,
      StartAfter: startAfter === "" ? undefined : startAfter,
      MaxKeys: Math.min(keysMax, pageKeysMax),
      EncodingType: "url",
    });
    const page = await this.#s3.repeatable((client, each) => client.send(command, each));
    const decode = (text: string | undefined) => decodeListedKey(text, page.EncodingType);
    const objects = (page.Contents ?? []).map((item) => listedObject(bucket, decode(item.Key), item));
    const commonPrefixes = (page.CommonPrefixes ?? []).map((each) => decode(each.Prefix));
    const last = [objects.at(-1)?.key, commonPrefixes.at(-1)].filter((text) => text !== undefined);
    const nextStartAfter = page.IsTruncated === true ? (last.toSorted(compareKeys).at(-1) ?? null) : null;
    return { objects, commonPrefixes, nextStartAfter };
  }

  /**
   * Copies an object within the service. Services ignore conditions on the destination of a copy, so a copy with a
   * condition is a put instead.
   */
  async link(source: ObjectHead, bucket: string, key: string, options: PutOptions): Promise<ObjectHead | null> {
    if (source.etag.includes("-") || source.byteLength > bodyBytesMax || options.condition !== undefined) return null;
    const command = new CopyObjectCommand({
      Bucket: bucket,
      Key: key,
      CopySource: encodeURIComponent(`${source.bucket}/${source.key}`),
      CopySourceIfMatch: source.etag,
      MetadataDirective: "REPLACE",
      TaggingDirective: "REPLACE",
    });
    const sent = withHeaders(command, describingHeaders(options));
    const limits = transferLimits(bucket, source.byteLength, options.signal);
    const { contentType = "binary/octet-stream", headers = {} } = options;
    try {
      const output = await this.#s3.once((client, each) => client.send(sent, each), limits);
      const { byteLength, checksums } = source;
      return await this.#written(bucket, key, output.CopyObjectResult?.ETag, {
        byteLength,
        contentType,
        headers,
        checksums,
      });
    } catch (cause) {
      if (!(cause instanceof AwsError)) throw cause;
      // The source was deleted or replaced.
      if (cause.code === "NoSuchKey" || cause.code === "PreconditionFailed") return null;
      throw cause;
    }
  }

  async changeHeaders(
    bucket: string,
    key: string,
    changes: Readonly<Record<string, string | null>>,
  ): Promise<ObjectHead> {
    for (const [name, value] of Object.entries(changes)) {
      if (name !== "x-amz-tagging") throw new Error(`bug: S3 changes no header ${name} of an object`);
      const target = { Bucket: bucket, Key: key };
      const TagSet = [...new URLSearchParams(value ?? "")].map(([Key, Value]) => ({ Key, Value }));
      await this.#s3.repeatable((client, options) =>
        value === null
          ? client.send(new DeleteObjectTaggingCommand(target), options)
          : client.send(new PutObjectTaggingCommand({ ...target, Tagging: { TagSet } }), options),
      );
    }
    return this.head(bucket, key);
  }

  createUpload(bucket: string, key: string, options: UploadOptions): Promise<UploadHead> {
    return this.#uploads.create(bucket, key, options);
  }

  putPart(upload: UploadId, partNumber: number, body: Readable, options: PutOptions): Promise<PartHead> {
    return this.#uploads.putPart(upload, partNumber, body, options);
  }

  async completeUpload(
    upload: UploadId,
    parts: readonly CompletedPart[],
    options: CompleteOptions,
  ): Promise<ObjectHead> {
    const etag = await this.#uploads.complete(upload, parts, options);
    return this.#head(upload.bucket, upload.key, etag);
  }

  abortUpload(upload: UploadId): Promise<void> {
    return this.#uploads.abort(upload);
  }

  headUpload(upload: UploadId): Promise<UploadChecksum> {
    return this.#uploads.head(upload);
  }

  listParts(upload: UploadId, options: ListPartsOptions): Promise<ItemPage<PartHead>> {
    return this.#uploads.listParts(upload, options);
  }

  listUploads(bucket: string, options: ListUploadsOptions): Promise<ItemPage<UploadHead>> {
    return this.#uploads.list(bucket, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#s3[Symbol.dispose]();
    await this.#pool[Symbol.asyncDispose]();
  }
}

function listedObject(bucket: string, key: string, item: ListedItem): ListedObject {
  const algorithms = (item.ChecksumAlgorithm ?? []).map((name) => [name.toLowerCase(), null]);
  return {
    bucket,
    key,
    byteLength: item.Size ?? 0,
    etag: item.ETag ?? "",
    lastModifiedMs: item.LastModified?.getTime() ?? 0,
    checksums: Object.fromEntries(algorithms) as Record<string, null>,
    ...(item.ChecksumType === undefined ? {} : { checksumType: item.ChecksumType }),
  };
}

const invalidRange = () =>
  new AwsError("InvalidRange", "The requested range is not satisfiable", { statusFallback: 416 });
