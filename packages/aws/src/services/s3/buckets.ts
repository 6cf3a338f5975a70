import { AwsError } from "@galatea/base";
import type { ListPage, ListedObject } from "@galatea/hosting/objects";
import { uriEncode } from "../../signing/index.ts";
import { malformedXml, readXml } from "../../wire/index.ts";
import { sendEmpty, sendXml } from "./replies.ts";
import { readDocument } from "./request-body.ts";
import { integerArgument, type S3Request } from "./s3-request.ts";

const keysPerPageMax = 1000;
const bucketsPerPageMax = 10_000;
const documentBytesMax = 2 * 2 ** 20;

/** Lists all buckets, or the requested page of them. All buckets are in the client's region. */
export async function listBuckets(request: S3Request): Promise<void> {
  const { query, context } = request;
  const prefix = query.get("prefix");
  const token = query.get("continuation-token");
  const region = query.get("bucket-region");
  const limit = { fallback: Number.POSITIVE_INFINITY, max: bucketsPerPageMax };
  const countMax = integerArgument(query.get("max-buckets"), "max-buckets", limit);
  if (countMax === 0) {
    throw new AwsError("InvalidArgument", `Argument max-buckets must be an integer between 1 and ${bucketsPerPageMax}`);
  }
  const after = token === undefined ? "" : readToken(token);
  const found = (await request.store.buckets()).filter(
    ({ bucket }) => bucket > after && bucket.startsWith(prefix ?? "") && (region ?? context.region) === context.region,
  );
  const shown = found.slice(0, countMax);
  sendXml(request, "ListAllMyBucketsResult", {
    Buckets: {
      Bucket: shown.map(({ bucket, createdMs }) => ({
        Name: bucket,
        CreationDate: new Date(createdMs).toISOString(),
        BucketRegion: context.region,
      })),
    },
    Owner: ownerOf(request),
    ContinuationToken: found.length > shown.length ? writeToken(shown.at(-1)?.bucket ?? "") : null,
    Prefix: prefix,
  });
}

const ownerOf = (request: S3Request) => ({ ID: request.context.accountId });

export async function createBucket(request: S3Request): Promise<void> {
  if (request.headers["content-length"] !== undefined && request.headers["content-length"] !== "0") {
    const document = await readDocument(request, documentBytesMax);
    if (document.byteLength > 0) await readXml(document, "CreateBucketConfiguration", request.context);
  }
  await request.store.createBucket(request.bucket);
  sendEmpty(request, 200, { Location: `/${request.bucket}` });
}

export async function headBucket(request: S3Request): Promise<void> {
  await request.store.headBucket(request.bucket);
  sendEmpty(request, 200, { "x-amz-bucket-region": request.context.region });
}

export async function deleteBucket(request: S3Request): Promise<void> {
  await request.store.deleteBucket(request.bucket);
  sendEmpty(request, 204);
}

export async function getBucketLocation(request: S3Request): Promise<void> {
  await request.store.headBucket(request.bucket);
  const { region } = request.context;
  const body = Buffer.from(
    `<?xml version="1.0" encoding="UTF-8"?>\n<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${region === "us-east-1" ? "" : region}</LocationConstraint>`,
  );
  request.response.writeHead(200, { "Content-Type": "application/xml", "Content-Length": body.byteLength }).end(body);
}

/** Returns an empty configuration, which means that versioning was never enabled. */
export async function getBucketVersioning(request: S3Request): Promise<void> {
  await request.store.headBucket(request.bucket);
  sendXml(request, "VersioningConfiguration", {});
}

interface ListParameters {
  readonly prefix: string;
  readonly delimiter: string;
  readonly keysMax: number;
  readonly encode: (text: string) => string;
  readonly encodingType: string | undefined;
}

function listParameters({ query }: S3Request): ListParameters {
  const encodingType = query.get("encoding-type");
  if (encodingType !== undefined && encodingType !== "url") {
    throw new AwsError("InvalidArgument", "Invalid Encoding Method specified in Request");
  }
  return {
    prefix: query.get("prefix") ?? "",
    delimiter: query.get("delimiter") ?? "",
    keysMax: integerArgument(query.get("max-keys"), "maxKeys", { fallback: keysPerPageMax, max: keysPerPageMax }),
    encode: encodingType === undefined ? (text) => text : (text) => uriEncode(text).replaceAll("%2F", "/"),
    encodingType,
  };
}

/** Returns a page of a listing. A page of zero keys, with which tools test their permission, is never truncated. */
async function page(request: S3Request, parameters: ListParameters, startAfter: string): Promise<ListPage> {
  const { bucket, store, isListed, context } = request;
  const { prefix, delimiter, keysMax } = parameters;
  const objects: ListedObject[] = [];
  const commonPrefixes: string[] = [];
  const missingCount = () => keysMax - objects.length - commonPrefixes.length;
  const shown = isListed === null ? {} : { isListed };
  await store.headBucket(bucket);
  let nextStartAfter = keysMax === 0 ? null : startAfter;
  // Reads on until the page is full, except for hidden keys. Otherwise the next page's token could contain a hidden
  // key.
  while (nextStartAfter !== null && missingCount() > 0) {
    const from: string = nextStartAfter;
    const options = { prefix, delimiter, startAfter: from, keysMax: missingCount(), ...shown };
    const found = await store.list(bucket, options);
    objects.push(...found.objects);
    commonPrefixes.push(...found.commonPrefixes);
    nextStartAfter = found.nextStartAfter;
    if (missingCount() > 0) await context.nextTick();
  }
  return { objects, commonPrefixes, nextStartAfter };
}

const contents = (head: ListedObject, encode: (text: string) => string) => ({
  Key: encode(head.key),
  LastModified: new Date(head.lastModifiedMs).toISOString(),
  ETag: head.etag,
  ChecksumAlgorithm: Object.keys(head.checksums).map((name) => name.toUpperCase()),
  ...(Object.keys(head.checksums).length === 0 ? {} : { ChecksumType: head.checksumType ?? "FULL_OBJECT" }),
  Size: head.byteLength,
  StorageClass: "STANDARD",
});

export async function listObjects(request: S3Request): Promise<void> {
  const parameters = listParameters(request);
  const { encode, delimiter } = parameters;
  const marker = request.query.get("marker") ?? "";
  const { objects, commonPrefixes, nextStartAfter } = await page(request, parameters, marker);
  sendXml(request, "ListBucketResult", {
    Name: request.bucket,
    Prefix: encode(parameters.prefix),
    Marker: encode(marker),
    MaxKeys: parameters.keysMax,
    Delimiter: delimiter === "" ? null : encode(delimiter),
    EncodingType: parameters.encodingType,
    IsTruncated: nextStartAfter !== null,
    // Without a delimiter, clients continue after the last key. With a delimiter, they need the marker.
    NextMarker: nextStartAfter === null || delimiter === "" ? null : encode(nextStartAfter),
    Contents: objects.map((head) => ({ ...contents(head, encode), Owner: ownerOf(request) })),
    CommonPrefixes: commonPrefixes.map((prefix) => ({ Prefix: encode(prefix) })),
  });
}

export async function listObjectsV2(request: S3Request): Promise<void> {
  const { query } = request;
  const parameters = listParameters(request);
  const { encode, delimiter } = parameters;
  const token = query.get("continuation-token");
  const startAfter = query.get("start-after") ?? "";
  const from = token === undefined ? startAfter : readToken(token);
  const { objects, commonPrefixes, nextStartAfter } = await page(request, parameters, from);
  const withOwner = query.get("fetch-owner") === "true" ? { Owner: ownerOf(request) } : {};
  sendXml(request, "ListBucketResult", {
    Name: request.bucket,
    Prefix: encode(parameters.prefix),
    MaxKeys: parameters.keysMax,
    KeyCount: objects.length + commonPrefixes.length,
    Delimiter: delimiter === "" ? null : encode(delimiter),
    EncodingType: parameters.encodingType,
    IsTruncated: nextStartAfter !== null,
    ContinuationToken: token,
    NextContinuationToken: nextStartAfter === null ? null : writeToken(nextStartAfter),
    StartAfter: startAfter === "" ? null : encode(startAfter),
    Contents: objects.map((head) => ({ ...contents(head, encode), ...withOwner })),
    CommonPrefixes: commonPrefixes.map((prefix) => ({ Prefix: encode(prefix) })),
  });
}

const writeToken = (startAfter: string) => Buffer.from(`1${startAfter}`).toString("base64url");

function readToken(token: string): string {
  const text = Buffer.from(token, "base64url").toString("utf8");
  if (!text.startsWith("1")) throw new AwsError("InvalidArgument", "The continuation token provided is incorrect");
  return text.slice(1);
}

/**
 * Returns XML elements as a list. The XML parser returns a single element as a record, and several elements as an
 * array.
 */
export function asElementList(value: unknown): Record<string, unknown>[] {
  const list: unknown[] = Array.isArray(value) ? value : value === undefined ? [] : [value];
  return list.map((item) => {
    if (typeof item !== "object" || item === null) throw malformedXml();
    return item as Record<string, unknown>;
  });
}
