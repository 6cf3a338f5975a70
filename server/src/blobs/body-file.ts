import { open, rm, type FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { AwsError } from "../base/index.ts";
import { BodyDigest, type DigestName } from "./checksum.ts";
import type { HashPool } from "./hash-pool.ts";
import type { BodyExpectation, PutOptions } from "./object-store.ts";

export interface WrittenBody {
  readonly byteLength: number;
  readonly digests: Readonly<Partial<Record<DigestName, string>>>;
}

export interface BodyFileOptions {
  readonly digests: readonly DigestName[];
  readonly signal: AbortSignal;
  readonly bytesMax: number;
  readonly released?: PutOptions["released"];
}

/** A stretch of a file that belongs to one body. */
export interface FileRegion {
  readonly offset: number;
  readonly byteLength: number;
}

/** Bodies up to this are hashed where they arrive (1.7 ms at most); longer ones by the worker. */
const inlineBytesMax = 2 ** 20;
const batchBytes = 2 ** 18;
const reportBytes = 2 ** 22;

/**
 * Streams a body into a new file, whose sync is the caller's. On any failure the file is gone and the body destroyed.
 * Holds one batch of 256 KiB (1 MiB until a body proves to be longer), however long the body is.
 */
export async function writeBodyFile(
  path: string,
  body: Readable,
  pool: HashPool,
  options: BodyFileOptions,
): Promise<WrittenBody> {
  try {
    return await writeBody({ path, flags: "wx", offset: 0 }, body, pool, options);
  } catch (cause) {
    await rm(path, { force: true });
    throw cause;
  }
}

/** As `writeBodyFile`, into a stretch of a file, which is made where it is absent. A longer body is refused, and nothing else touched. */
export async function writeBodyRegion(
  path: string,
  region: FileRegion,
  body: Readable,
  pool: HashPool,
  options: Omit<BodyFileOptions, "bytesMax">,
): Promise<WrittenBody> {
  await (await open(path, "a")).close();
  const target = { path, flags: "r+", offset: region.offset };
  return await writeBody(target, body, pool, { ...options, bytesMax: region.byteLength });
}

interface BodyTarget {
  readonly path: string;
  readonly flags: string;
  readonly offset: number;
}

async function writeBody(
  target: BodyTarget,
  body: Readable,
  pool: HashPool,
  options: BodyFileOptions,
): Promise<WrittenBody> {
  const abort = () => body.destroy(options.signal.reason as Error);
  // What ends the body early is told by its iteration; without a listener it would also end the process.
  body.on("error", () => undefined);
  if (options.signal.aborted) abort();
  options.signal.addEventListener("abort", abort, { once: true });
  try {
    await using file = await open(target.path, target.flags);
    return await writeInto(file, target, body, pool, options);
  } catch (cause) {
    body.destroy();
    throw diskError(cause);
  } finally {
    options.signal.removeEventListener("abort", abort);
  }
}

async function writeInto(
  file: FileHandle,
  { path, offset }: BodyTarget,
  body: Readable,
  pool: HashPool,
  options: BodyFileOptions,
): Promise<WrittenBody> {
  let batch: Buffer[] = [];
  let batched = 0;
  let written = 0;
  let reported = 0;
  let hash: ReturnType<HashPool["follow"]> | null = null;
  const flush = async () => {
    await writeAll(file, batch, { offset: offset + written, byteLength: batched });
    written += batched;
    for (const chunk of batch) options.released?.(chunk);
    batch = [];
    batched = 0;
  };
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      batch.push(chunk);
      batched += chunk.byteLength;
      if (written + batched > options.bytesMax) throw tooLarge(options.bytesMax);
      if (written === 0 && batched <= inlineBytesMax) continue;
      if (batched < batchBytes) continue;
      await flush();
      hash ??= options.digests.length === 0 ? null : pool.follow(path, options.digests, offset);
      if (written - reported < reportBytes) continue;
      hash?.written(written);
      reported = written;
    }
    if (hash === null && written === 0) {
      return await finishInline(file, batch, { offset, byteLength: batched }, options.digests);
    }
    await flush();
    return { byteLength: written, digests: hash === null ? {} : await hash.end(written) };
  } finally {
    hash?.[Symbol.dispose]();
  }
}

async function finishInline(
  file: FileHandle,
  batch: readonly Buffer[],
  region: FileRegion,
  names: readonly DigestName[],
): Promise<WrittenBody> {
  const digest = new BodyDigest(names);
  for (const chunk of batch) digest.update(chunk);
  await writeAll(file, batch, region);
  return { byteLength: region.byteLength, digests: digest.digest() };
}

/** `writev` may write less than asked without an error; what is left is written as one piece. */
async function writeAll(file: FileHandle, buffers: readonly Buffer[], region: FileRegion): Promise<void> {
  const { offset, byteLength } = region;
  if (byteLength === 0) return;
  let { bytesWritten: done } = await file.writev(buffers, offset);
  if (done === byteLength) return;
  const whole = Buffer.concat(buffers);
  while (done < byteLength) done += (await file.write(whole, done, byteLength - done, offset + done)).bytesWritten;
}

/** Holds a written body to what was announced. Throws S3's error of the first difference. */
export function checkBody(written: WrittenBody, expect: BodyExpectation | undefined): void {
  if (expect === undefined) return;
  if (expect.byteLength !== undefined && expect.byteLength !== written.byteLength) {
    throw new AwsError(
      "IncompleteBody",
      "You did not provide the number of bytes specified by the Content-Length HTTP header",
    );
  }
  for (const [name, value] of Object.entries(expect.announced())) {
    if (name === "signedSha256") {
      if (written.digests.sha256 === value) continue;
      throw new AwsError(
        "XAmzContentSHA256Mismatch",
        "The provided 'x-amz-content-sha256' header does not match what was computed.",
      );
    }
    if (written.digests[name as DigestName] === value) continue;
    const label = name === "md5" ? "Content-MD5" : name.toUpperCase();
    const what = name === "md5" ? "what we received" : "the calculated checksum";
    throw new AwsError("BadDigest", `The ${label} you specified did not match ${what}.`);
  }
}

/** Which digests a body needs: its ETag's, those to keep, those to check. */
export function digestsFor(expect: BodyExpectation | undefined): DigestName[] {
  return ["md5", ...(expect?.algorithms ?? [])];
}

function tooLarge(bytesMax: number): AwsError {
  return new AwsError(
    "EntityTooLarge",
    `Your proposed upload exceeds the maximum allowed object size of ${bytesMax} bytes`,
  );
}

export function diskError(cause: unknown): unknown {
  const code = (cause as NodeJS.ErrnoException | null)?.code;
  if (code === "EROFS") {
    const text = "The disk where the objects are kept is read-only";
    return new AwsError("InternalError", text, { cause, statusFallback: 500 });
  }
  if (code !== "ENOSPC" && code !== "EDQUOT") return cause;
  return new AwsError("InsufficientStorage", "There is no space left where the objects are kept", {
    cause,
    statusFallback: 507,
  });
}
