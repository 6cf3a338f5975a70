import { cp, link, mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { HeadObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { create } from "tar";

export function tenantName(index: number): string {
  return `tenant-${String(index + 1).padStart(2, "0")}`;
}

const linkedAboveBytes = 1024 * 1024;

/**
 * One tenant's model repository: the shared models (large files as hard links) and one file of its own, so that every archive
 * differs while the weights in it are the same bytes.
 */
async function stageTenant(repository: string, staging: string, tenant: string): Promise<void> {
  await rm(staging, { recursive: true, force: true });
  for (const each of await readdir(repository, { recursive: true, withFileTypes: true })) {
    const from = join(each.parentPath, each.name);
    const to = join(staging, from.slice(repository.length));
    if (each.isDirectory()) await mkdir(to, { recursive: true });
    else {
      await mkdir(dirname(to), { recursive: true });
      const { size } = await stat(from);
      await (size > linkedAboveBytes ? link(from, to) : cp(from, to));
    }
  }
  await writeFile(join(staging, "sentence_embedding", "1", "tenant.txt"), `${tenant}\n`);
}

/**
 * Packs a tenant's repository as tar.gz and uploads it while it is packed; no archive lies on disk. Level 0: float weights do not
 * compress, level 6 costs two seconds and saves nothing. False when the object is there already.
 */
export async function uploadTenant(
  s3: S3Client,
  at: { readonly bucket: string; readonly key: string },
  models: { readonly repository: string; readonly staging: string; readonly tenant: string },
  abortSignal: AbortSignal,
): Promise<boolean> {
  const head = new HeadObjectCommand({ Bucket: at.bucket, Key: at.key });
  const there = await s3.send(head, { abortSignal }).catch((error: Error) => {
    if (error.name === "NotFound") return null;
    throw error;
  });
  if (there !== null) return false;
  await stageTenant(models.repository, models.staging, models.tenant);
  const body = new PassThrough({ highWaterMark: 1024 * 1024 });
  const packed = create({ gzip: { level: 0 }, cwd: models.staging, portable: true, maxReadSize: 1024 * 1024 }, ["."]);
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
  await rm(models.staging, { recursive: true, force: true });
  return true;
}
