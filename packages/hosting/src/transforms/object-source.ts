import { pipeline, Transform, type Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { ObjectStore } from "../objects/index.ts";
import { transformClientError } from "./transform-error.ts";
import type { S3Location } from "./transform-request.ts";

/** The bytes of an input object, decompressed if necessary. Destroy the stream to stop reading. */
export interface ObjectSource {
  readonly body: Readable;
  /** Number of bytes of `body`; null if it is unknown in advance. */
  readonly byteLength: number | null;
}

export async function openObjectSource(
  store: Pick<ObjectStore, "get">,
  location: S3Location,
  { isGzip, bytesMax }: { readonly isGzip: boolean; readonly bytesMax: number | null },
): Promise<ObjectSource> {
  const { head, body } = await store.get(location.bucket, location.key);
  const tooLong = () =>
    transformClientError(`the object is longer than the ${bytesMax} bytes of MaxPayloadInMB, and SplitType is None`);
  if (!isGzip) {
    if (bytesMax === null || head.byteLength <= bytesMax) return { body, byteLength: head.byteLength };
    body.destroy();
    throw tooLong();
  }
  let byteLength = 0;
  const bounded = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      byteLength += chunk.length;
      if (bytesMax !== null && byteLength > bytesMax) done(tooLong());
      else done(null, chunk);
    },
  });
  const inflated = pipeline(body, createGunzip(), bounded, () => {});
  return { body: inflated, byteLength: null };
}

/** Converts a decompression error to a client error; returns other errors unchanged. */
export function toSourceError(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== "Z_DATA_ERROR" && code !== "Z_BUF_ERROR") return error;
  return transformClientError(`CompressionType is Gzip, and the object is not: ${(error as Error).message}`, {
    cause: error,
  });
}
