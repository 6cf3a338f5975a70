import { open, rm, type FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { AwsError } from "@galatea/base";
import { BodyDigest, type DigestName } from "./checksum.ts";
import { writeBuffers } from "./durable-file.ts";
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

/** The range of a file that one body is written to. */
export interface FileRegion {
  readonly offset: number;
  readonly byteLength: number;
}

/**
 * Bodies up to this length are hashed on the serving thread, which takes at most 1.7 ms. Longer bodies are hashed by
 * the hashing process.
 */
const inlineBytesMax = 2 ** 20;
const batchBytes = 2 ** 18;
const reportBytes = 2 ** 22;

/** A received body. `chunks` has the bytes of a short body; null: the bytes are in the file. */
export interface ReceivedBody extends WrittenBody {
  readonly chunks: readonly Buffer[] | null;
}

/**
 * Streams a body to a new file, which the caller syncs. A body of up to 1 MiB is buffered in memory instead, without a
 * file. On failure, the file is removed and the body is destroyed. Memory is bounded: at most the first 1 MiB, then
 * batches of 256 KiB.
 */
export async function receiveBody(
  path: string,
  body: Readable,
  pool: HashPool,
  options: BodyFileOptions,
): Promise<ReceivedBody> {
  try {
    return await writeBody({ path, flags: "wx", offset: 0, holdsShort: true }, body, pool, options);
  } catch (cause) {
    await rm(path, { force: true });
    throw cause;
  }
}

/** Streams a body to a new file like `receiveBody`, but writes short bodies to the file, too. */
export async function writeBodyFile(
  path: string,
  body: Readable,
  pool: HashPool,
  options: BodyFileOptions,
): Promise<WrittenBody> {
  try {
    return await writeBody({ path, flags: "wx", offset: 0, holdsShort: false }, body, pool, options);
  } catch (cause) {
    await rm(path, { force: true });
    throw cause;
  }
}

/**
 * Streams a body to a range of a file, which is created if absent. A body longer than the range is rejected, and
 * nothing is written outside the range.
 */
export async function writeBodyRegion(
  path: string,
  region: FileRegion,
  body: Readable,
  pool: HashPool,
  options: Omit<BodyFileOptions, "bytesMax">,
): Promise<WrittenBody> {
  await (await open(path, "a")).close();
  const target = { path, flags: "r+", offset: region.offset, holdsShort: false };
  return await writeBody(target, body, pool, { ...options, bytesMax: region.byteLength });
}

interface BodyTarget {
  readonly path: string;
  readonly flags: string;
  readonly offset: number;
  readonly holdsShort: boolean;
}

async function writeBody(
  target: BodyTarget,
  body: Readable,
  pool: HashPool,
  options: BodyFileOptions,
): Promise<ReceivedBody> {
  const abort = () => body.destroy(options.signal.reason as Error);
  // The iteration below handles errors of the body. Without this listener, an error would also end the process.
  body.on("error", () => undefined);
  if (options.signal.aborted) abort();
  options.signal.addEventListener("abort", abort, { once: true });
  try {
    const chunks = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    const beginning = await readBeginning(chunks, options.bytesMax);
    if (beginning.isWhole) return await takeShort(target, beginning, options.digests);
    await using file = await open(target.path, target.flags);
    return await writeLong(file, { target, beginning, chunks }, pool, options);
  } catch (cause) {
    body.destroy();
    throw toStoreError(cause);
  } finally {
    options.signal.removeEventListener("abort", abort);
  }
}

interface Beginning {
  readonly batch: Buffer[];
  readonly byteLength: number;
  /** True if these chunks are the complete body. */
  readonly isWhole: boolean;
}

async function readBeginning(chunks: AsyncIterator<Buffer>, bytesMax: number): Promise<Beginning> {
  const batch: Buffer[] = [];
  let byteLength = 0;
  while (byteLength <= inlineBytesMax) {
    const { done, value } = await chunks.next();
    if (done === true) return { batch, byteLength, isWhole: true };
    batch.push(value);
    byteLength += value.byteLength;
    if (byteLength > bytesMax) throw tooLarge(bytesMax);
  }
  return { batch, byteLength, isWhole: false };
}

async function takeShort(
  { path, flags, offset, holdsShort }: BodyTarget,
  { batch, byteLength }: Beginning,
  names: readonly DigestName[],
): Promise<ReceivedBody> {
  const digest = new BodyDigest(names);
  for (const chunk of batch) digest.update(chunk);
  const digests = digest.digest();
  if (holdsShort) return { byteLength, digests, chunks: batch };
  await using file = await open(path, flags);
  await writeBuffers(file, batch, { offset, byteLength });
  return { byteLength, digests, chunks: null };
}

interface LongBody {
  readonly target: BodyTarget;
  readonly beginning: Beginning;
  /** The chunks that follow `beginning`. */
  readonly chunks: AsyncIterator<Buffer>;
}

async function writeLong(
  file: FileHandle,
  { target: { path, offset }, beginning, chunks }: LongBody,
  pool: HashPool,
  options: BodyFileOptions,
): Promise<ReceivedBody> {
  let { batch, byteLength: batched } = beginning;
  let written = 0;
  let reported = 0;
  let hash: ReturnType<HashPool["follow"]> | null = null;
  const flush = async () => {
    await writeBuffers(file, batch, { offset: offset + written, byteLength: batched });
    written += batched;
    for (const chunk of batch) options.released?.(chunk);
    batch = [];
    batched = 0;
  };
  try {
    for (let isOver = false; !isOver || batched > 0;) {
      if (isOver || batched >= batchBytes) {
        await flush();
        hash ??= options.digests.length === 0 ? null : pool.follow(path, options.digests, offset);
        if (written - reported < reportBytes) continue;
        hash?.written(written);
        reported = written;
        continue;
      }
      const { done, value } = await chunks.next();
      isOver = done === true;
      if (done === true) continue;
      batch.push(value);
      batched += value.byteLength;
      if (written + batched > options.bytesMax) throw tooLarge(options.bytesMax);
    }
    return { byteLength: written, digests: hash === null ? {} : await hash.end(written), chunks: null };
  } finally {
    hash?.[Symbol.dispose]();
  }
}

/** Checks a written body against the announced values. Throws S3's error for the first difference. */
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

/**
 * Returns the digests to compute: MD5 for the ETag, CRC-32 for checks of later reads, and the algorithms that the
 * client requested.
 */
export function requiredDigests(expect: BodyExpectation | undefined): DigestName[] {
  return ["md5", "crc32", ...(expect?.algorithms ?? [])];
}

function tooLarge(bytesMax: number): AwsError {
  return new AwsError(
    "EntityTooLarge",
    `Your proposed upload exceeds the maximum allowed object size of ${bytesMax} bytes`,
  );
}

export function toStoreError(cause: unknown): unknown {
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
