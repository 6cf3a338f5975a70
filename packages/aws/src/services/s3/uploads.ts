import { AwsError } from "@galatea/base";
import {
  checksumAlgorithms,
  partNumberMax,
  type BodyExpectation,
  type ChecksumType,
  type CompletedPart,
  type UploadId,
} from "@galatea/hosting/objects";
import { malformedXml, readXml } from "../../wire/index.ts";
import { parseChecksumAlgorithm, announcedAlgorithms, announcedChecksums } from "./announced-checksums.ts";
import { asElementList } from "./buckets.ts";
import { checkCopyConditions, copyRange, copySource } from "./copies.ts";
import { checksumElements, checksumHeaders, storedHeaders } from "./object-headers.ts";
import { writeCondition } from "./objects.ts";
import { sendEmpty, sendXml, sendXmlWhenDone } from "./replies.ts";
import { bodyBytesOf, openBody, readDocument } from "./request-body.ts";
import { integerArgument, type S3Request } from "./s3-request.ts";

const documentBytesMax = 4 * 2 ** 20;
const partsPerPageMax = 1000;

const uploadOf = (request: S3Request): UploadId => ({
  bucket: request.bucket,
  key: request.key,
  uploadId: request.query.get("uploadId") ?? "",
});

export async function createUpload(request: S3Request): Promise<void> {
  const { store, bucket, key, headers, response } = request;
  const checksumAlgorithm = parseChecksumAlgorithm(headers["x-amz-checksum-algorithm"]);
  const checksumType = checksumTypeOf(headers["x-amz-checksum-type"], checksumAlgorithm);
  const stored = storedHeaders(headers);
  using slot = await request.reserve(0);
  const kept = { ...stored, headers: { ...stored.headers, ...slot.headers } };
  const upload = await store.createUpload(bucket, key, { ...kept, checksumAlgorithm, checksumType });
  slot.commit();
  if (checksumAlgorithm !== null) {
    response.setHeader("x-amz-checksum-algorithm", checksumAlgorithm.toUpperCase());
    response.setHeader("x-amz-checksum-type", checksumType);
  }
  sendXml(request, "InitiateMultipartUploadResult", { Bucket: bucket, Key: key, UploadId: upload.uploadId });
}

function checksumTypeOf(text: string | undefined, algorithm: string | null): ChecksumType {
  const type = text?.toUpperCase() ?? (algorithm === "crc64nvme" ? "FULL_OBJECT" : "COMPOSITE");
  const sum = algorithm === "sha1" || algorithm === "sha256";
  if (type === "COMPOSITE" ? algorithm !== "crc64nvme" : type === "FULL_OBJECT" && !sum) return type as ChecksumType;
  throw new AwsError(
    "InvalidRequest",
    `The ${type} checksum type cannot be used with the ${algorithm} checksum algorithm.`,
  );
}

export async function putPart(request: S3Request): Promise<void> {
  const { store, context } = request;
  const id = uploadOf(request);
  const number = partNumberOf(request);
  const { checksumAlgorithm } = await store.headUpload(id);
  const other = announcedAlgorithms(request.headers).find((name) => name !== checksumAlgorithm);
  // If the upload was created without an algorithm, each part may have its own.
  if (checksumAlgorithm !== null && other !== undefined) {
    throw new AwsError(
      "InvalidRequest",
      `Checksum Type mismatch occurred, expected checksum Type: ${checksumAlgorithm}, actual checksum Type: ${other}`,
    );
  }
  using slot = await request.reserve(bodyBytesOf(request));
  const { body, ...options } = openBody(request);
  const part = await store.putPart(id, number, body, { ...options, signal: context.signal });
  slot.commit();
  sendEmpty(request, 200, { ETag: part.etag, ...checksumHeaders({ checksums: part.checksums }) });
}

function partNumberOf({ query }: S3Request): number {
  const text = query.get("partNumber") ?? "";
  const number = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number <= partNumberMax) return number;
  throw new AwsError("InvalidArgument", `Part number must be an integer between 1 and ${partNumberMax}, inclusive`, {
    members: { ArgumentName: "partNumber", ArgumentValue: text.slice(0, 64) },
  });
}

export async function copyPart(request: S3Request): Promise<void> {
  const { store, headers, context } = request;
  const id = uploadOf(request);
  const number = partNumberOf(request);
  await store.headUpload(id);
  const source = copySource(request);
  const from = await store.head(source.bucket, source.key);
  checkCopyConditions(request, from);
  const text = headers["x-amz-copy-source-range"];
  const range = text === undefined ? undefined : copyRange(text, from.byteLength);
  await sendXmlWhenDone(request, request.clock, "CopyPartResult", async () => {
    const { head: opened, body } = await store.get(source.bucket, source.key, range);
    try {
      if (opened !== from) checkCopyConditions(request, opened);
      const part = await store.putPart(id, number, body, { signal: context.signal });
      return { LastModified: new Date(part.lastModifiedMs).toISOString(), ETag: part.etag, ...checksumElements(part) };
    } finally {
      body.destroy();
    }
  });
}

export async function completeUpload(request: S3Request): Promise<void> {
  const { store, bucket, key, headers, context } = request;
  const id = uploadOf(request);
  const condition = writeCondition(request);
  const expect = expectedObject(headers);
  const document = await readXml(
    await readDocument({ ...request, headers: bareHeaders(headers) }, documentBytesMax),
    "CompleteMultipartUpload",
    context,
    "Part",
  );
  const parts = asElementList(document["Part"]).map(completedPart);
  const type = headers["x-amz-checksum-type"]?.toUpperCase();
  if (type !== undefined && !isChecksumType(type)) {
    throw new AwsError("InvalidRequest", "Value for x-amz-checksum-type header is invalid.");
  }
  await sendXmlWhenDone(request, request.clock, "CompleteMultipartUploadResult", async () => {
    const options = {
      ...condition,
      expect,
      signal: context.signal,
      ...(type === undefined ? {} : { checksumType: type }),
    };
    const head = await store.completeUpload(id, parts, options);
    const elements =
      head.checksumType === undefined || Object.keys(head.checksums).length === 0
        ? {}
        : { ChecksumType: head.checksumType };
    const location = `http://${headers["host"] ?? ""}/${bucket}/${encodeURIComponent(key)}`;
    return { Location: location, Bucket: bucket, Key: key, ETag: head.etag, ...checksumElements(head), ...elements };
  });
}

const isChecksumType = (text: string): text is ChecksumType => text === "COMPOSITE" || text === "FULL_OBJECT";

/**
 * Returns the properties to verify. In CompleteMultipartUpload, the checksum headers and the length describe the whole
 * object, not the request's document.
 */
function expectedObject(headers: S3Request["headers"]): BodyExpectation {
  const entries = announcedChecksums(headers);
  const length = headers["x-amz-mp-object-size"];
  if (length !== undefined && !/^\d{1,15}$/.test(length)) {
    throw new AwsError("InvalidRequest", "Value for x-amz-mp-object-size header is invalid.");
  }
  return {
    algorithms: [],
    announced: () => Object.fromEntries(entries),
    ...(length === undefined ? {} : { byteLength: Number(length) }),
  };
}

function bareHeaders(headers: S3Request["headers"]): S3Request["headers"] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith("x-amz-checksum-")));
}

function completedPart(part: Record<string, unknown>): CompletedPart {
  const { PartNumber: number, ETag: etag } = part;
  if (typeof number !== "string" || typeof etag !== "string" || !/^\s*\d{1,6}\s*$/.test(number)) throw malformedXml();
  const checksums: Record<string, string> = {};
  for (const name of checksumAlgorithms) {
    const value = part[`Checksum${name.toUpperCase()}`];
    if (typeof value === "string") checksums[name] = value.trim();
  }
  return { partNumber: Number(number), etag: etag.trim(), checksums };
}

export async function abortUpload(request: S3Request): Promise<void> {
  await request.store.abortUpload(uploadOf(request));
  sendEmpty(request, 204);
}

export async function listParts(request: S3Request): Promise<void> {
  const { store, query, context } = request;
  const id = uploadOf(request);
  const upload = await store.headUpload(id);
  const after = integerArgument(query.get("part-number-marker"), "part-number-marker", { fallback: 0, max: 10_000 });
  const partsMax = integerArgument(query.get("max-parts"), "max-parts", {
    fallback: partsPerPageMax,
    max: partsPerPageMax,
  });
  const { items: shown, isTruncated } = await store.listParts(id, { afterNumber: after, countMax: partsMax });
  const algorithm = upload.checksumAlgorithm?.toUpperCase();
  sendXml(request, "ListPartsResult", {
    Bucket: id.bucket,
    Key: id.key,
    UploadId: id.uploadId,
    PartNumberMarker: after,
    NextPartNumberMarker: shown.at(-1)?.partNumber ?? after,
    MaxParts: partsMax,
    IsTruncated: isTruncated && partsMax > 0,
    Part: shown.map((part) => ({
      PartNumber: part.partNumber,
      LastModified: new Date(part.lastModifiedMs).toISOString(),
      ETag: part.etag,
      Size: part.byteLength,
      ...checksumElements(part),
    })),
    Initiator: { ID: context.accountId },
    Owner: { ID: context.accountId },
    StorageClass: "STANDARD",
    ...(algorithm === undefined ? {} : { ChecksumAlgorithm: algorithm, ChecksumType: upload.checksumType }),
  });
}

export async function listUploads(request: S3Request): Promise<void> {
  const { store, bucket, query } = request;
  if (query.has("delimiter"))
    throw new AwsError("NotImplemented", "ListMultipartUploads with a delimiter is not implemented", {
      statusFallback: 501,
    });
  const prefix = query.get("prefix") ?? "";
  const keyMarker = query.get("key-marker") ?? "";
  const idMarker = query.get("upload-id-marker") ?? "";
  const uploadsMax = integerArgument(query.get("max-uploads"), "max-uploads", {
    fallback: partsPerPageMax,
    max: partsPerPageMax,
  });
  const after = keyMarker === "" ? null : { key: keyMarker, uploadId: idMarker === "" ? null : idMarker };
  const { items: shown, ...page } = await store.listUploads(bucket, { prefix, after, countMax: uploadsMax });
  const isTruncated = page.isTruncated && uploadsMax > 0;
  sendXml(request, "ListMultipartUploadsResult", {
    Bucket: bucket,
    KeyMarker: keyMarker,
    UploadIdMarker: idMarker,
    NextKeyMarker: isTruncated ? shown.at(-1)?.key : null,
    NextUploadIdMarker: isTruncated ? shown.at(-1)?.uploadId : null,
    Prefix: prefix,
    MaxUploads: uploadsMax,
    IsTruncated: isTruncated,
    Upload: shown.map((upload) => ({
      Key: upload.key,
      UploadId: upload.uploadId,
      Initiated: new Date(upload.startedMs).toISOString(),
      StorageClass: "STANDARD",
    })),
  });
}
