import { AwsError } from "@galatea/base";
import type { ObjectHead } from "@galatea/hosting/objects";

export interface ConditionHeaders {
  readonly ifMatch: string | undefined;
  readonly ifNoneMatch: string | undefined;
  readonly ifModifiedSince: string | undefined;
  readonly ifUnmodifiedSince: string | undefined;
}

/**
 * Checks conditions in the order of RFC 9110: an ETag has priority over a date. Throws AwsError for a failed condition.
 */
export function checkConditions(head: ObjectHead, headers: ConditionHeaders): "serve" | "not-modified" {
  // HTTP dates have a resolution of one second.
  const modifiedMs = Math.floor(head.lastModifiedMs / 1000) * 1000;
  if (headers.ifMatch !== undefined) {
    if (!etagListed(headers.ifMatch, head.etag)) throw preconditionFailed("If-Match");
  } else if (headers.ifUnmodifiedSince !== undefined && modifiedMs > Date.parse(headers.ifUnmodifiedSince)) {
    throw preconditionFailed("If-Unmodified-Since");
  }
  if (headers.ifNoneMatch !== undefined) return etagListed(headers.ifNoneMatch, head.etag) ? "not-modified" : "serve";
  const since = headers.ifModifiedSince;
  return since !== undefined && modifiedMs <= Date.parse(since) ? "not-modified" : "serve";
}

export function etagListed(list: string, etag: string): boolean {
  const bare = etag.replaceAll('"', "");
  return list
    .split(",")
    .some((entry) => entry.trim() === "*" || entry.trim().replace(/^W\//, "").replaceAll('"', "") === bare);
}

/** Returns an ETag with quotes, which clients may omit. */
export const quotedEtag = (etag: string): string => (etag === "*" || etag.startsWith('"') ? etag : `"${etag}"`);

export function preconditionFailed(condition: string): AwsError {
  return new AwsError("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", {
    statusFallback: 412,
    members: { Condition: condition },
  });
}

/** Parses `bytes=a-b`, `a-`, `-n` to [start, end); null for values that S3 ignores (several ranges, other units). */
export function parseRange(header: string | undefined, byteLength: number): { start: number; end: number } | null {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "");
  if (match === null || (match[1] === "" && match[2] === "")) return null;
  const [, first = "", last = ""] = match;
  if (first === "") {
    const count = Math.min(Number(last), byteLength);
    if (count === 0) throw invalidRange(header ?? "", byteLength);
    return { start: byteLength - count, end: byteLength };
  }
  const start = Number(first);
  const end = last === "" ? byteLength : Math.min(Number(last) + 1, byteLength);
  if (last !== "" && Number(last) < start) return null;
  if (start >= byteLength) throw invalidRange(header ?? "", byteLength);
  return { start, end };
}

function invalidRange(range: string, byteLength: number): AwsError {
  return new AwsError("InvalidRange", "The requested range is not satisfiable", {
    statusFallback: 416,
    members: { RangeRequested: range, ActualObjectSize: byteLength },
  });
}
