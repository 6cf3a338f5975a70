import { AwsError } from "@galatea/base";
import type { DeleteCondition, ObjectHead, PutCondition } from "./object-store.ts";

/** Checks a put's condition; `before` is the object at the moment of the write. */
export function checkPutCondition(before: ObjectHead | undefined, condition: PutCondition | undefined): void {
  const { ifMatch, ifNoneMatch } = condition ?? {};
  if (ifMatch !== undefined && before === undefined) {
    throw new AwsError("NoSuchKey", "The specified key does not exist.", { statusFallback: 404 });
  }
  if (ifMatch !== undefined && !matches(ifMatch, before)) throw failed("If-Match");
  if (ifNoneMatch !== undefined && matches(ifNoneMatch, before)) throw failed("If-None-Match");
}

/** Checks a delete's condition: an ETag requires an object; a date or a length also holds without one. */
export function checkDeleteCondition(before: ObjectHead | undefined, condition: DeleteCondition | undefined): void {
  const { ifMatch, lastModifiedMs, byteLength } = condition ?? {};
  if (ifMatch !== undefined && !matches(ifMatch, before)) throw failed("If-Match");
  if (before === undefined) return;
  // Dates of clients have whole seconds.
  const isDated = lastModifiedMs === undefined || seconds(lastModifiedMs) === seconds(before.lastModifiedMs);
  if (!isDated) throw failed("x-amz-if-match-last-modified-time");
  if (byteLength !== undefined && byteLength !== before.byteLength) throw failed("x-amz-if-match-size");
}

const matches = (etag: string, before: ObjectHead | undefined) =>
  before !== undefined && (etag === "*" || etag === before.etag);
const seconds = (epochMs: number) => Math.floor(epochMs / 1000);

const failed = (condition: string) =>
  new AwsError("PreconditionFailed", "At least one of the pre-conditions you specified did not hold", {
    statusFallback: 412,
    members: { Condition: condition },
  });
