import { pipeline } from "node:stream/promises";
import { AwsError } from "../../../base/index.ts";
import type { ObjectHead, PutOptions } from "../../../blobs/index.ts";
import { checkConditions, parseRange, preconditionFailed } from "./conditions.ts";
import {
  checksumElements,
  checksumHeaders,
  encryptionHeaders,
  objectHeaders,
  storedHeaders,
} from "./object-headers.ts";
import { sendEmpty, sendXml, sendXmlWhenDone } from "./replies.ts";
import { algorithmOf, openBody } from "./request-body.ts";
import type { S3Request } from "./s3-request.ts";

export async function getObject(request: S3Request): Promise<void> {
  const { store, bucket, key, response, headers } = request;
  if (request.query.has("partNumber"))
    throw new AwsError("NotImplemented", "GetObject by partNumber is not built", { statusFallback: 501 });
  const head = await store.head(bucket, key);
  if (served(request, head) === "not-modified") return sendEmpty(request, 304, { ETag: head.etag });
  const range = parseRange(headers["range"], head.byteLength);
  if (request.method === "HEAD") {
    const span = range ?? { start: 0, end: head.byteLength };
    response
      .writeHead(range === null ? 200 : 206, {
        ...objectHeaders(head, request, range === null),
        ...spanHeaders(head, span, range !== null),
      })
      .end();
    return;
  }
  const { head: opened, body } = await store.get(bucket, key, range ?? undefined);
  if (opened.etag !== head.etag) {
    // Replaced since its conditions were checked: from the start, with the new version.
    body.destroy();
    return getObject(request);
  }
  const span = range ?? { start: 0, end: head.byteLength };
  response.writeHead(range === null ? 200 : 206, {
    ...objectHeaders(head, request, range === null),
    ...spanHeaders(head, span, range !== null),
  });
  await pipeline(body, response, { signal: request.context.signal });
}

function spanHeaders(
  head: ObjectHead,
  span: { start: number; end: number },
  isRange: boolean,
): Record<string, string | number> {
  const length = { "Content-Length": span.end - span.start };
  return isRange ? { ...length, "Content-Range": `bytes ${span.start}-${span.end - 1}/${head.byteLength}` } : length;
}

function served(request: S3Request, head: ObjectHead): "serve" | "not-modified" {
  const { headers } = request;
  return checkConditions(head, {
    ifMatch: headers["if-match"],
    ifNoneMatch: headers["if-none-match"],
    ifModifiedSince: headers["if-modified-since"],
    ifUnmodifiedSince: headers["if-unmodified-since"],
  });
}

/** The conditions of a write, as the store checks them when it makes the object visible. */
export function writeCondition(request: S3Request): Pick<PutOptions, "condition"> {
  const { "if-match": ifMatch, "if-none-match": ifNoneMatch } = request.headers;
  if (ifMatch === undefined && ifNoneMatch === undefined) return {};
  if (ifNoneMatch !== undefined && ifNoneMatch !== "*") {
    throw new AwsError("NotImplemented", "If-None-Match on a write takes only *", { statusFallback: 501 });
  }
  const quoted = (etag: string) => (etag === "*" || etag.startsWith('"') ? etag : `"${etag}"`);
  return {
    condition: {
      ...(ifMatch === undefined ? {} : { ifMatch: quoted(ifMatch) }),
      ...(ifNoneMatch === undefined ? {} : { ifNoneMatch }),
    },
  };
}

export async function putObject(request: S3Request): Promise<void> {
  const { store, bucket, key, headers, context } = request;
  await store.headBucket(bucket);
  const stored = storedHeaders(headers);
  const condition = writeCondition(request);
  const { body, expect } = openBody(request);
  const head = await store.put(bucket, key, body, { ...stored, ...condition, expect, signal: context.signal });
  sendEmpty(request, 200, { ETag: head.etag, ...checksumHeaders(head), ...encryptionHeaders(head.headers) });
}

export async function deleteObject(request: S3Request): Promise<void> {
  await request.store.delete(request.bucket, request.key);
  sendEmpty(request, 204);
}

export async function copyObject(request: S3Request): Promise<void> {
  const { store, bucket, key, headers, context } = request;
  const source = copySource(request);
  const directive = (headers["x-amz-metadata-directive"] ?? "COPY").toUpperCase();
  if (source.bucket === bucket && source.key === key && directive === "COPY") {
    throw new AwsError(
      "InvalidRequest",
      "This copy request is illegal because it is trying to copy an object to itself without changing the object's metadata, storage class, website redirect location or encryption attributes.",
    );
  }
  await store.headBucket(bucket);
  const condition = writeCondition(request);
  await sendXmlWhenDone(request, request.clock, "CopyObjectResult", async () => {
    const { head: from, body } = await store.get(source.bucket, source.key);
    try {
      checkCopyConditions(request, from);
      const stored =
        directive === "REPLACE"
          ? storedHeaders(headers)
          : { contentType: from.contentType, headers: { ...from.headers, ...encryptionHeaders(headers) } };
      const wanted = algorithmOf(headers["x-amz-checksum-algorithm"]);
      const kept = Object.keys(from.checksums)
        .map((name) => algorithmOf(name))
        .filter((name) => name !== null);
      const expect = {
        algorithms: wanted === null ? kept : [wanted],
        announced: () => ({}),
        byteLength: from.byteLength,
      };
      const head = await store.put(bucket, key, body, { ...stored, ...condition, expect, signal: context.signal });
      return { LastModified: new Date(head.lastModifiedMs).toISOString(), ETag: head.etag, ...checksumElements(head) };
    } finally {
      body.destroy();
    }
  });
}

/** `bucket/key`, with or without a slash before it, URL encoded. */
export function copySource(request: S3Request): { bucket: string; key: string } {
  const text = request.headers["x-amz-copy-source"] ?? "";
  const [path = "", version] = text.split("?versionId=");
  if (version !== undefined && version !== "null")
    throw new AwsError("NotImplemented", "Versions are not built", { statusFallback: 501 });
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

export async function getObjectTagging(request: S3Request): Promise<void> {
  const head = await request.store.head(request.bucket, request.key);
  const tags = [...new URLSearchParams(head.headers["x-amz-tagging"] ?? "")].map(([Key, Value]) => ({ Key, Value }));
  sendXml(request, "Tagging", { TagSet: { Tag: tags } });
}
