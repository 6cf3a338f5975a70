import { AwsError } from "@galatea/base";
import type { ObjectStore } from "../objects/index.ts";
import { parseS3Uri } from "../definitions/index.ts";

/** Where the archives of a multi-model endpoint are: below a prefix, by the store's ETag. */
export interface ArchiveSource {
  /** The archive's version now (its ETag) and length; null when there is no such object. */
  find(target: string, signal: AbortSignal): Promise<{ readonly etag: string; readonly byteLength: number } | null>;
}

export function createArchiveSource(uri: string, store: Pick<ObjectStore, "head">): ArchiveSource {
  const place = parseS3Uri(uri);
  if (place === null) throw new Error(`not an S3 location: ${uri}`);
  return {
    async find(target, signal) {
      signal.throwIfAborted();
      const head = await absentAsNull(store.head(place.bucket, `${place.key}${target}`));
      return head === null ? null : { etag: head.etag, byteLength: head.byteLength };
    },
  };
}

/** Null where the store says that there is no such object or bucket. */
export async function absentAsNull<Value>(asked: Promise<Value>): Promise<Value | null> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof AwsError && absentCodes.has(error.code)) return null;
    throw error;
  }
}

const absentCodes: ReadonlySet<string> = new Set(["NoSuchKey", "NoSuchBucket", "NotFound"]);
