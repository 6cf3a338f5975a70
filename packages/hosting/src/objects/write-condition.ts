import { AwsError } from "@galatea/base";
import type { DeleteCondition, ObjectHead, PutCondition } from "./object-store.ts";

/**
 * Checks the condition of a put. `before`: the existing object; undefined if there is none. Throws S3's error if the
 * condition is not met.
 */
export function checkPutCondition(before: ObjectHead | undefined, condition: PutCondition | undefined): void {
  const { ifMatch, ifNoneMatch } = condition ?? {};
  if (ifMatch !== undefined && before === undefined) {
    throw new AwsError("NoSuchKey", "The specified key does not exist.", { statusFallback: 404 });
  }
  if (ifMatch !== undefined && !matches(ifMatch, before)) throw failed("If-Match");
  if (ifNoneMatch !== undefined && matches(ifNoneMatch, before)) throw failed("If-None-Match");
}

/**
 * Checks the condition of a delete. An ETag requires an existing object; a date or length is ignored if no object
 * exists.
 */
export function checkDeleteCondition(before: ObjectHead | undefined, condition: DeleteCondition | undefined): void {
  const { ifMatch, lastModifiedMs, byteLength } = condition ?? {};
  if (ifMatch !== undefined && !matches(ifMatch, before)) throw failed("If-Match");
  if (before === undefined) return;
  // HTTP dates have whole seconds.
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
