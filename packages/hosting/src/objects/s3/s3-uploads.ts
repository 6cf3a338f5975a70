import type { Readable } from "node:stream";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  UploadPartCommand,
  type UploadPartCommandOutput,
  type S3Client,
  type ChecksumAlgorithm as S3ChecksumAlgorithm,
} from "@aws-sdk/client-s3";
import { AwsError, systemClock } from "@galatea/base";
import { noSuchUpload } from "../completed-parts.ts";
import {
  partNumberMax,
  type ChecksumAlgorithm,
  type CompletedPart,
  type CompleteOptions,
  type ItemPage,
  type ListPartsOptions,
  type ListUploadsOptions,
  type PartHead,
  type PutOptions,
  type UploadChecksum,
  type UploadHead,
  type UploadId,
  type UploadOptions,
} from "../object-store.ts";
import {
  checksumParameters,
  checksumsOf,
  decodeListedKey,
  describingHeaders,
  withHeaders,
} from "./object-parameters.ts";
import { transferLimits, type S3CallOptions, type S3Connection, type SendCall } from "./s3-connection.ts";

/** A received and checked body. Disposing it deletes its file. */
export interface SentBody extends AsyncDisposable {
  readonly byteLength: number;
  /** MD5 in base64. */
  readonly md5: string;
  readonly checksums: Readonly<Record<string, string>>;
  readonly checksumHeaders: Readonly<Record<string, string>>;
  /** Returns the bytes for one attempt. The stream of a previous attempt is destroyed. */
  bytes(): Buffer | Readable;
}

interface S3UploadsDependencies {
  readonly receive: (body: Readable, options: PutOptions) => Promise<SentBody>;
}

/** Maximum number of items that S3 lists in a page. */
const pageItemsMax = 1000;

/** The multipart uploads of an S3 service. */
export class S3Uploads {
  readonly #s3: S3Connection;
  readonly #receive: S3UploadsDependencies["receive"];

  constructor(s3: S3Connection, { receive }: S3UploadsDependencies) {
    this.#s3 = s3;
    this.#receive = receive;
  }

  async create(bucket: string, key: string, options: UploadOptions): Promise<UploadHead> {
    const { checksumAlgorithm, checksumType } = options;
    const command = new CreateMultipartUploadCommand({
      Bucket: bucket,
      Key: key,
      ...(checksumAlgorithm === null
        ? {}
        : { ChecksumAlgorithm: checksumAlgorithm.toUpperCase() as S3ChecksumAlgorithm, ChecksumType: checksumType }),
    });
    const sent = withHeaders(command, describingHeaders(options));
    const { UploadId: uploadId = "" } = await this.#s3.once((client, each) => client.send(sent, each));
    return { bucket, key, uploadId, startedMs: systemClock.epochMs(), checksumAlgorithm, checksumType };
  }

  async putPart(upload: UploadId, partNumber: number, body: Readable, options: PutOptions): Promise<PartHead> {
    if (partNumber < 1 || partNumber > partNumberMax) {
      body.destroy();
      throw new AwsError("InvalidArgument", `Part number must be an integer between 1 and ${partNumberMax}, inclusive`);
    }
    await using received = await this.#receive(body, options);
    const { byteLength, checksums } = received;
    const send: SendCall<UploadPartCommandOutput> = (client, each) => {
      const command = new UploadPartCommand({
        ...uploadMembers(upload),
        PartNumber: partNumber,
        Body: received.bytes(),
        ContentLength: byteLength,
        ContentMD5: received.md5,
      });
      return client.send(withHeaders(command, received.checksumHeaders), each);
    };
    const limits = {
      ...transferLimits(upload.bucket, byteLength, options.signal),
      probe: (client: S3Client, each: S3CallOptions) => client.send(new ListPartsCommand(uploadMembers(upload)), each),
    };
    const output = await this.#s3.repeatable(send, limits);
    const etag = output.ETag ?? "";
    return {
      partNumber,
      byteLength,
      etag,
      lastModifiedMs: systemClock.epochMs(),
      checksums: { ...checksums, ...checksumsOf(output) },
    };
  }

  /** Completes an upload. Resolves with the ETag of the object. */
  async complete(
    upload: UploadId,
    parts: readonly CompletedPart[],
    { condition, expect, checksumType, signal }: CompleteOptions,
  ): Promise<string | undefined> {
    const command = new CompleteMultipartUploadCommand({
      ...uploadMembers(upload),
      IfMatch: condition?.ifMatch,
      IfNoneMatch: condition?.ifNoneMatch,
      MpuObjectSize: expect?.byteLength,
      ChecksumType: checksumType,
      ...checksumParameters(expect?.announced() ?? {}),
      MultipartUpload: {
        Parts: parts.map(({ partNumber, etag, checksums }) => ({
          PartNumber: partNumber,
          ETag: etag,
          ...checksumParameters(checksums),
        })),
      },
    });
    const limits = transferLimits(upload.bucket, expect?.byteLength ?? Infinity, signal);
    const method = condition === undefined ? "repeatable" : "once";
    return (await this.#s3[method]((client, each) => client.send(command, each), limits)).ETag;
  }

  async abort(upload: UploadId): Promise<void> {
    const command = new AbortMultipartUploadCommand(uploadMembers(upload));
    await this.#s3.once((client, each) => client.send(command, each));
  }

  async head(upload: UploadId): Promise<UploadChecksum> {
    const command = new ListPartsCommand({ ...uploadMembers(upload), MaxParts: 1 });
    const page = await this.#s3.repeatable((client, each) => client.send(command, each));
    return {
      checksumAlgorithm: (page.ChecksumAlgorithm?.toLowerCase() ?? null) as ChecksumAlgorithm | null,
      checksumType: page.ChecksumType ?? "COMPOSITE",
    };
  }

  async listParts(upload: UploadId, { afterNumber, countMax }: ListPartsOptions): Promise<ItemPage<PartHead>> {
    const command = new ListPartsCommand({
      ...uploadMembers(upload),
      PartNumberMarker: String(afterNumber),
      MaxParts: Math.min(countMax, pageItemsMax),
    });
    const page = await this.#s3.repeatable((client, each) => client.send(command, each));
    const items = (page.Parts ?? []).map((part) => ({
      partNumber: part.PartNumber ?? 0,
      byteLength: part.Size ?? 0,
      etag: part.ETag ?? "",
      lastModifiedMs: part.LastModified?.getTime() ?? 0,
      checksums: checksumsOf(part),
    }));
    return { items, isTruncated: page.IsTruncated === true };
  }

  async list(bucket: string, { prefix, after, countMax }: ListUploadsOptions): Promise<ItemPage<UploadHead>> {
    const command = new ListMultipartUploadsCommand({
      Bucket: bucket,
      Prefix: prefix,
      KeyMarker: after?.key,
      UploadIdMarker: after?.uploadId ?? undefined,
      // For a page of zero items, S3 always reports that nothing follows, so at least one is requested.
      MaxUploads: Math.max(1, Math.min(countMax, pageItemsMax)),
      EncodingType: "url",
    });
    const page = await this.#s3.repeatable((client, each) => client.send(command, each), {
      absentCode: "NoSuchBucket",
    });
    const items = (page.Uploads ?? []).map((upload) => ({
      bucket,
      key: decodeListedKey(upload.Key, page.EncodingType),
      uploadId: upload.UploadId ?? "",
      startedMs: upload.Initiated?.getTime() ?? 0,
      checksumAlgorithm: (upload.ChecksumAlgorithm?.toLowerCase() ?? null) as ChecksumAlgorithm | null,
      checksumType: upload.ChecksumType ?? ("COMPOSITE" as const),
    }));
    if (countMax === 0) return { items: [], isTruncated: items.length > 0 };
    return { items, isTruncated: page.IsTruncated === true };
  }
}

/** Returns the SDK parameters of an upload. Clients may send an empty id, which the SDK rejects. */
function uploadMembers({ bucket, key, uploadId }: UploadId) {
  if (uploadId === "") throw noSuchUpload();
  return { Bucket: bucket, Key: key, UploadId: uploadId };
}
