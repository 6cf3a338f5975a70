import { link, open, rm, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { toStoreError, writeBodyFile } from "./body-file.ts";
import { completedChecksums, invalidPart, combinedCrc, stripQuotes } from "./completed-parts.ts";
import type { HashPool } from "./hash-pool.ts";
import { joinedFileName } from "./joined-parts.ts";
import type { StoredPart, MultipartUpload } from "./stored-upload.ts";

/** The parts of an upload that are assembled to an object. */
export interface ObjectAssembly {
  readonly upload: MultipartUpload;
  readonly parts: readonly StoredPart[];
  /** Folder of the upload's parts. */
  readonly folder: string;
  /** Path of the object's file. */
  readonly path: string;
  readonly pool: HashPool;
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

export interface AssembledObject {
  readonly byteLength: number;
  readonly checksums: Record<string, string>;
  readonly crc32: number;
}

/**
 * Joins parts into the object's file. The caller syncs the file. The object's checksums are computed from the checksums
 * of the parts, without reading them again.
 */
export async function assembleParts(assembly: ObjectAssembly): Promise<AssembledObject> {
  const { upload, parts, folder, path, pool, bytesMax, signal } = assembly;
  if (upload.isResumed) await checkParts(assembly);
  const byteLength = parts.reduce((sum, part) => sum + part.byteLength, 0);
  if (upload.joined.close(parts)) await takeJoined(assembly, byteLength);
  else {
    const bytes = Readable.from(partBytes(folder, parts), { objectMode: true, highWaterMark: 1 });
    await writeBodyFile(path, bytes, pool, { digests: [], signal, bytesMax });
  }
  return { byteLength, checksums: completedChecksums(upload, parts), crc32: combinedCrc(parts) };
}

/**
 * Links the file of joined parts to the object's path, so that no byte is copied. The removal of the upload deletes the
 * other name.
 */
async function takeJoined({ folder, path }: ObjectAssembly, byteLength: number): Promise<void> {
  await link(join(folder, joinedFileName), path);
  try {
    // A rejected part may have written bytes after the last valid part.
    await truncate(path, byteLength);
  } catch (cause) {
    await rm(path, { force: true });
    throw toStoreError(cause);
  }
}

/** Checks parts that a previous run received against their ETags, because a power failure may have damaged them. */
async function checkParts({ upload, parts, folder, pool, signal }: ObjectAssembly): Promise<void> {
  for (const part of parts) {
    signal.throwIfAborted();
    using hash = pool.follow(join(folder, part.data), ["md5"], part.offset ?? 0);
    const { size } = await stat(join(folder, part.data));
    const isThere = size >= (part.offset ?? 0) + part.byteLength;
    const { md5 = "" } = await hash.end(isThere ? part.byteLength : 0);
    if (Buffer.from(md5, "base64").toString("hex") === stripQuotes(part.etag)) continue;
    upload.parts.delete(part.partNumber);
    throw invalidPart();
  }
}

async function* partBytes(folder: string, parts: readonly StoredPart[]): AsyncGenerator<Buffer> {
  for (const part of parts) {
    await using file = await open(join(folder, part.data), "r");
    for (let at = 0; at < part.byteLength;) {
      const buffer = Buffer.allocUnsafe(Math.min(2 ** 21, part.byteLength - at));
      const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, (part.offset ?? 0) + at);
      if (bytesRead === 0)
        throw new Error(
          `the stored file of part ${part.partNumber} is truncated: ${at} of ${part.byteLength} bytes (${part.data})`,
        );
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }
}
