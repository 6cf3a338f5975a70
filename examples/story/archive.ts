import { PassThrough } from "node:stream";
import type { S3Client } from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { create } from "tar";
import { megabytes } from "./megabytes.ts";

export interface ArchiveUpload {
  readonly directory: string;
  /** Called with the number of bytes that were sent so far. */
  readonly detail: (text: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Packs a directory as tar.gz and uploads it at the same time, without a file on disk. Compression level 0 is used,
 * because float weights do not compress. Up to 128 MiB are one PutObject, whose copies the platform stores once.
 */
export async function uploadArchive(
  s3: S3Client,
  at: { readonly bucket: string; readonly key: string },
  { directory, detail, signal }: ArchiveUpload,
): Promise<void> {
  const body = new PassThrough({ highWaterMark: 1024 * 1024 });
  const packed = create({ gzip: { level: 0 }, cwd: directory, portable: true, maxReadSize: 1024 * 1024 }, ["."]);
  packed.on("error", (error) => body.destroy(error as Error));
  packed.pipe(body);
  const upload = new Upload({
    client: s3,
    params: { Bucket: at.bucket, Key: at.key, Body: body, ContentType: "application/gzip" },
    partSize: 128 * 1024 * 1024,
    queueSize: 1,
  });
  upload.on("httpUploadProgress", ({ loaded = 0 }) => detail(`${megabytes(loaded)} uploaded`));
  const onAbort = () => void upload.abort();
  signal.addEventListener("abort", onAbort, { once: true });
  signal.throwIfAborted();
  try {
    await upload.done();
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
