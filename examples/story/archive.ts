import { PassThrough } from "node:stream";
import { HeadObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { create } from "tar";

/**
 * Packs the directory that `stage` gives as tar.gz and uploads it while it is packed; no archive lies on disk. Level 0: float weights do
 * not compress, level 6 costs two seconds and saves nothing. False when the object is there already: then nothing is staged.
 */
export async function uploadArchive(
  s3: S3Client,
  at: { readonly bucket: string; readonly key: string },
  stage: () => Promise<string>,
  abortSignal: AbortSignal,
): Promise<boolean> {
  const head = new HeadObjectCommand({ Bucket: at.bucket, Key: at.key });
  const there = await s3.send(head, { abortSignal }).catch((error: Error) => {
    if (error.name === "NotFound") return null;
    throw error;
  });
  if (there !== null) return false;
  const directory = await stage();
  const body = new PassThrough({ highWaterMark: 1024 * 1024 });
  const packed = create({ gzip: { level: 0 }, cwd: directory, portable: true, maxReadSize: 1024 * 1024 }, ["."]);
  packed.on("error", (error) => body.destroy(error as Error));
  packed.pipe(body);
  const upload = new Upload({
    client: s3,
    params: { Bucket: at.bucket, Key: at.key, Body: body, ContentType: "application/gzip" },
    partSize: 32 * 1024 * 1024,
    queueSize: 2,
  });
  const onAbort = () => void upload.abort();
  abortSignal.addEventListener("abort", onAbort, { once: true });
  abortSignal.throwIfAborted();
  try {
    await upload.done();
  } finally {
    abortSignal.removeEventListener("abort", onAbort);
  }
  return true;
}
