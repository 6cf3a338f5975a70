import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { AwsError } from "@galatea/base";
import type { ObjectHead, PutOptions } from "@galatea/hosting/objects";
import { checkConditions, parseRange, quotedEtag } from "./conditions.ts";
import { checksumHeaders, objectHeaders, storedHeaders } from "./object-headers.ts";
import { sendEmpty } from "./replies.ts";
import { bodyBytesOf, openBody } from "./request-body.ts";
import type { S3Request } from "./s3-request.ts";

export async function getObject(request: S3Request): Promise<void> {
  const { store, bucket, key, response, headers } = request;
  if (request.query.has("partNumber"))
    throw new AwsError("NotImplemented", "GetObject by partNumber is not implemented", { statusFallback: 501 });
  const head = await store.head(bucket, key);
  if (served(request, head) === "not-modified") return sendEmpty(request, 304, { ETag: head.etag });
  const range = parseRange(headers["range"], head.byteLength);
  const span = range ?? { start: 0, end: head.byteLength };
  const status = range === null ? 200 : 206;
  // Computed before the object is opened, because invalid headers throw and would leave the object open.
  const result = { ...objectHeaders(head, request, range === null), ...spanHeaders(head, span, range !== null) };
  if (request.method === "HEAD") return void response.writeHead(status, result).end();
  const { head: opened, body } = await store.get(bucket, key, range ?? undefined);
  try {
    if (opened.etag === head.etag && opened.lastModifiedMs === head.lastModifiedMs) {
      await beginning(body);
      response.writeHead(status, result);
      return await pipeline(body, response, { signal: request.context.signal });
    }
  } finally {
    body.destroy();
  }
  // The object was replaced after its conditions were checked. Starts again with the new version.
  return getObject(request);
}

/**
 * Waits for the first bytes of a body. A read error before them can still be sent as an error response; after them,
 * only closing the connection reports the error.
 */
function beginning(body: Readable): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  body.once("readable", resolve).once("error", reject);
  return promise.finally(() => body.off("readable", resolve).off("error", reject));
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

/** Returns the conditions of a write. The store checks them at the moment at which it makes the object visible. */
export function writeCondition(request: S3Request): Pick<PutOptions, "condition"> {
  const { "if-match": ifMatch, "if-none-match": ifNoneMatch } = request.headers;
  const refused = ["if-modified-since", "if-unmodified-since"].find((name) => request.headers[name] !== undefined);
  if (refused !== undefined || (ifNoneMatch !== undefined && ifNoneMatch !== "*")) {
    const message =
      refused === undefined ? "If-None-Match on a write takes only *" : `${refused} on a write is not implemented`;
    throw new AwsError("NotImplemented", message, { statusFallback: 501 });
  }
  if (ifMatch === undefined && ifNoneMatch === undefined) return {};
  return {
    condition: {
      ...(ifMatch === undefined ? {} : { ifMatch: quotedEtag(ifMatch) }),
      ...(ifNoneMatch === undefined ? {} : { ifNoneMatch }),
    },
  };
}

export async function putObject(request: S3Request): Promise<void> {
  const { store, bucket, key, headers, context } = request;
  await store.headBucket(bucket);
  const stored = storedHeaders(headers);
  const condition = writeCondition(request);
  using slot = await request.reserve(bodyBytesOf(request));
  const { body, ...options } = openBody(request);
  const kept = { ...stored, headers: { ...stored.headers, ...slot.headers } };
  const head = await store.put(bucket, key, body, { ...kept, ...condition, ...options, signal: context.signal });
  slot.commit();
  sendEmpty(request, 200, { ETag: head.etag, ...checksumHeaders(head) });
}
