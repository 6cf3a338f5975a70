import type { OutgoingHttpHeaders } from "node:http";
import { AwsError } from "@galatea/base";
import type { ObjectHead } from "@galatea/hosting/objects";
import { writerHeader } from "./object-writers.ts";
import type { S3Request } from "./s3-request.ts";
import { checkTagging } from "./tagging.ts";

/**
 * Headers that are stored with an object and returned with it. Encryption headers are not stored, because only the disk
 * may encrypt objects.
 */
const storedNames = new Set([
  "cache-control",
  "content-disposition",
  "content-encoding",
  "content-language",
  "expires",
  "x-amz-website-redirect-location",
  "x-amz-tagging",
]);

const metadataPrefix = "x-amz-meta-";
const metadataBytesMax = 2048;
const otherBytesMax = 8192;

/** The headers of a request that are stored with the object. */
export interface StoredHeaders {
  readonly contentType?: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function storedHeaders(headers: S3Request["headers"]): StoredHeaders {
  const kept: Record<string, string> = {};
  let metadataBytes = 0;
  let otherBytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue;
    if (name.startsWith(metadataPrefix))
      metadataBytes += name.length - metadataPrefix.length + Buffer.byteLength(value);
    else if (storedNames.has(name)) otherBytes += Buffer.byteLength(value);
    else continue;
    const text = name === "content-encoding" ? withoutChunked(value) : value;
    if (text !== "" || name.startsWith(metadataPrefix)) kept[name] = text;
  }
  if (metadataBytes > metadataBytesMax || otherBytes > otherBytesMax) {
    throw new AwsError("MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size", {
      members: { Size: metadataBytes, MaxSizeAllowed: metadataBytesMax },
    });
  }
  checkTagging(kept["x-amz-tagging"] ?? "");
  const contentType = headers["content-type"] ?? "";
  return { headers: kept, ...(contentType === "" ? {} : { contentType }) };
}

/** Removes `aws-chunked`, which is the framing of the transfer and not the encoding of the object. */
const withoutChunked = (value: string) =>
  value
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part.toLowerCase() !== "aws-chunked")
    .join(",");

/** Query parameters that replace a header of the response. */
const overrides: Readonly<Record<string, string>> = {
  "response-content-type": "content-type",
  "response-content-language": "content-language",
  "response-expires": "expires",
  "response-cache-control": "cache-control",
  "response-content-disposition": "content-disposition",
  "response-content-encoding": "content-encoding",
};

export function objectHeaders(head: ObjectHead, request: S3Request, isWhole: boolean): OutgoingHttpHeaders {
  const { "x-amz-tagging": tagging, [writerHeader]: _, ...stored } = head.headers;
  const headers: OutgoingHttpHeaders = {
    "Accept-Ranges": "bytes",
    ETag: head.etag,
    "Last-Modified": new Date(head.lastModifiedMs).toUTCString(),
    "content-type": head.contentType,
    ...mailSafe(stored),
  };
  if (tagging !== undefined) headers["x-amz-tagging-count"] = new URLSearchParams(tagging).size;
  if (isWhole && request.headers["x-amz-checksum-mode"]?.toUpperCase() === "ENABLED")
    Object.assign(headers, checksumHeaders(head));
  for (const [parameter, name] of Object.entries(overrides)) {
    const value = request.query.get(parameter);
    if (value !== undefined) headers[name] = value;
  }
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === "string" && /[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      throw new AwsError("InvalidArgument", `The value of ${name} cannot be sent as a header`);
    }
  }
  return headers;
}

/**
 * Encodes metadata as S3 does: values that are not ASCII become encoded words of RFC 2047. S3 and Node read header
 * bytes as Latin-1. An encoded word for a UTF-8 value therefore encodes each byte as a character, as the example in
 * S3's user guide shows.
 */
function mailSafe(stored: Readonly<Record<string, string>>): Record<string, string> {
  const encoded = ([name, value]: [string, string]): [string, string] =>
    name.startsWith(metadataPrefix) && /[\x80-\xff]/.test(value)
      ? [name, `=?UTF-8?B?${Buffer.from(value).toString("base64")}?=`]
      : [name, value];
  return Object.fromEntries(Object.entries(stored).map(encoded));
}

export function checksumHeaders(head: Pick<ObjectHead, "checksums" | "checksumType">): Record<string, string> {
  const entries = Object.entries(head.checksums).map(([name, value]) => [`x-amz-checksum-${name}`, value] as const);
  if (entries.length === 0) return {};
  return { ...Object.fromEntries(entries), "x-amz-checksum-type": head.checksumType ?? "FULL_OBJECT" };
}

/** Returns elements such as `<ChecksumCRC32>`, for XML responses. */
export function checksumElements(head: Pick<ObjectHead, "checksums">): Record<string, string> {
  return Object.fromEntries(
    Object.entries(head.checksums).map(([name, value]) => [`Checksum${name.toUpperCase()}`, value]),
  );
}
