import { AwsError } from "@galatea/base";
import type { ObjectHead } from "@galatea/hosting/objects";
import { parseChecksumAlgorithm } from "./announced-checksums.ts";
import { checkConditions, preconditionFailed } from "./conditions.ts";
import { checksumElements, storedHeaders, type StoredHeaders } from "./object-headers.ts";
import { writeCondition } from "./objects.ts";
import { sendXmlWhenDone } from "./replies.ts";
import type { S3Request } from "./s3-request.ts";

/** Headers that change an object. S3 allows a copy of an object to itself only with a change. */
const changingHeaders = ["x-amz-storage-class", "x-amz-website-redirect-location", "x-amz-server-side-encryption"];

export async function copyObject(request: S3Request): Promise<void> {
  const { store, bucket, key, headers, context } = request;
  const source = copySource(request);
  const isChange =
    headers["x-amz-metadata-directive"] === "REPLACE" || changingHeaders.some((name) => headers[name] !== undefined);
  if (source.bucket === bucket && source.key === key && !isChange) {
    throw new AwsError(
      "InvalidRequest",
      "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.",
    );
  }
  const requested = storedHeaders(headers);
  const desired = parseChecksumAlgorithm(headers["x-amz-checksum-algorithm"]);
  const condition = writeCondition(request);
  await store.headBucket(bucket);
  await sendXmlWhenDone(request, request.clock, "CopyObjectResult", async () => {
    const { head: from, body } = await store.get(source.bucket, source.key);
    try {
      checkCopyConditions(request, from);
      const kept = Object.keys(from.checksums)
        .map((name) => parseChecksumAlgorithm(name))
        .filter((name) => name !== null);
      const expect = {
        algorithms: desired === null ? kept : [desired],
        announced: () => ({}),
        byteLength: from.byteLength,
      };
      const stored = { ...copiedHeaders(from, requested, headers), ...condition, signal: context.signal };
      const isKept = desired === null || from.checksums[desired] !== undefined;
      const linked = isKept ? await store.link(from, bucket, key, stored) : null;
      const head = linked ?? (await store.put(bucket, key, body, { ...stored, expect }));
      return { LastModified: new Date(head.lastModifiedMs).toISOString(), ETag: head.etag, ...checksumElements(head) };
    } finally {
      body.destroy();
    }
  });
}

/**
 * Returns the headers of a copy. The request's directives select for metadata and for tags whether they are those of
 * the source or of the request. The website redirection is always the request's.
 */
export function copiedHeaders(
  from: ObjectHead,
  requested: StoredHeaders,
  headers: S3Request["headers"],
): StoredHeaders {
  const isReplaced = headers["x-amz-metadata-directive"] === "REPLACE";
  const redirect = named("x-amz-website-redirect-location", requested.headers);
  const tags = named("x-amz-tagging", (headers["x-amz-tagging-directive"] === "REPLACE" ? requested : from).headers);
  const metadata = isReplaced ? requested : from;
  const { contentType } = metadata;
  const plain = Object.entries(metadata.headers).filter(([name]) => !ownNames.test(name));
  return {
    ...(contentType === undefined ? {} : { contentType }),
    headers: { ...Object.fromEntries(plain), ...redirect, ...tags },
  };
}

const ownNames = /^x-(?:amz-(?:website-redirect-location|tagging)|galatea-writer)$/;

function named(name: string, headers: Readonly<Record<string, string>>): Record<string, string> {
  const value = headers[name];
  return value === undefined ? {} : { [name]: value };
}

/** Parses `bucket/key`, with or without a leading slash, URL encoded. */
export function copySource(request: S3Request): { bucket: string; key: string } {
  const text = request.headers["x-amz-copy-source"] ?? "";
  const [path = "", version] = text.split("?versionId=");
  if (version !== undefined && version !== "null")
    throw new AwsError("NotImplemented", "Versions are not implemented", { statusFallback: 501 });
  let decoded: string;
  try {
    decoded = decodeURIComponent(path).replace(/^\//, "");
  } catch (cause) {
    throw new AwsError("InvalidArgument", "Invalid copy source encoding", { cause });
  }
  const slash = decoded.indexOf("/");
  if (slash < 1 || slash === decoded.length - 1) {
    throw new AwsError("InvalidArgument", "Copy Source must mention the source bucket and key: sourcebucket/sourcekey");
  }
  return { bucket: decoded.slice(0, slash), key: decoded.slice(slash + 1) };
}

export function checkCopyConditions(request: S3Request, from: ObjectHead): void {
  const { headers } = request;
  const outcome = checkConditions(from, {
    ifMatch: headers["x-amz-copy-source-if-match"],
    ifNoneMatch: headers["x-amz-copy-source-if-none-match"],
    ifModifiedSince: headers["x-amz-copy-source-if-modified-since"],
    ifUnmodifiedSince: headers["x-amz-copy-source-if-unmodified-since"],
  });
  if (outcome === "not-modified") throw preconditionFailed("x-amz-copy-source-If-None-Match");
}

/** Parses `bytes=first-last` to [start, end). Throws if the range is not within the source. */
export function copyRange(text: string, byteLength: number): { start: number; end: number } {
  const match = /^bytes=(\d{1,15})-(\d{1,15})$/.exec(text);
  if (match === null || Number(match[2]) < Number(match[1])) {
    throw new AwsError(
      "InvalidArgument",
      "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are the zero-based offsets of the first and last bytes to copy",
      { members: { ArgumentName: "x-amz-copy-source-range", ArgumentValue: text.slice(0, 64) } },
    );
  }
  if (Number(match[2]) < byteLength) return { start: Number(match[1]), end: Number(match[2]) + 1 };
  throw new AwsError("InvalidArgument", `Range specified is not valid for source object of size: ${byteLength}`, {
    members: { ArgumentName: "x-amz-copy-source-range", ArgumentValue: text },
  });
}
