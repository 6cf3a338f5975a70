import { AwsError } from "@galatea/base";
import type { ObjectStore } from "../objects/index.ts";
import { parseS3Uri } from "../definitions/index.ts";

/** The archives of a multi-model endpoint, below one S3 prefix. */
export interface ArchiveSource {
  /** Resolves with the current ETag and length of a target's archive; null when there is no such object. */
  find(target: string, signal: AbortSignal): Promise<{ readonly etag: string; readonly byteLength: number } | null>;
}

export function createArchiveSource(uri: string, store: Pick<ObjectStore, "head">): ArchiveSource {
  const location = parseS3Uri(uri);
  if (location === null) throw new Error(`not an S3 location: ${uri}`);
  return {
    async find(target, signal) {
      signal.throwIfAborted();
      const head = await absentAsNull(store.head(location.bucket, `${location.key}${target}`));
      return head === null ? null : { etag: head.etag, byteLength: head.byteLength };
    },
  };
}

/** Resolves with null instead of rejecting because the object or bucket does not exist. */
export async function absentAsNull<Value>(found: Promise<Value>): Promise<Value | null> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof AwsError && absentCodes.has(error.code)) return null;
    throw error;
  }
}

const absentCodes: ReadonlySet<string> = new Set(["NoSuchKey", "NoSuchBucket", "NotFound"]);
