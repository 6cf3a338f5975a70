import { appendFile, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { SerialQueue } from "@galatea/base";
import { emptyIfMissing } from "../absent.ts";
import { splitAtLineEnds } from "../log-segments.ts";
import { segmentsReserved, type LogRecords, type LogStreamId } from "./log-records.ts";

/** A segment whose lines are in a local file. */
export interface LocalSegment {
  readonly segment: number;
  readonly path: string;
  /** Bytes of complete appends. */
  bytes: number;
  /** Bytes that are in the object store, and in the record of the chunk. */
  storedBytes: number;
  lastWrittenMs: number;
}

/** The bytes of the local files of all streams. */
export interface LocalUsage {
  bytes: number;
}

export interface LocalStreamOptions {
  readonly groupId: string;
  readonly name: string;
  /** Directory of all streams that have local files. */
  readonly directory: string;
  readonly usage: LocalUsage;
  readonly records: LogRecords;
  readonly streamBytesMax: number;
  readonly segmentBytesMax: number;
  readonly nowMs: () => number;
  /** Makes free space for more bytes of a stream in the local directory. */
  readonly makeSpace: (stream: LocalStream, bytes: number) => Promise<void>;
}

/**
 * The segments of a stream in local files: one that gets new lines, and older ones until they are in the object store.
 * Files are named `<directory>/<group id>/<stream id>/<segment>.log`.
 */
export class LocalStream {
  readonly groupId: string;
  readonly name: string;
  /** Null until the first segment. */
  streamId: string | null = null;
  /** Ascending by number. */
  readonly segments: LocalSegment[] = [];
  #isDeleted = false;
  readonly #options: LocalStreamOptions;
  readonly #changes = new SerialQueue();
  /** The segment that gets new lines. */
  #open: LocalSegment | null = null;
  #reserved = { next: 0, end: 0 };

  constructor(options: LocalStreamOptions) {
    this.groupId = options.groupId;
    this.name = options.name;
    this.#options = options;
  }

  /** The ids; null before the first segment. */
  get id(): LogStreamId | null {
    return this.streamId === null ? null : { groupId: this.groupId, streamId: this.streamId };
  }

  get lastWrittenMs(): number {
    return this.segments.at(-1)?.lastWrittenMs ?? 0;
  }

  /** True if the stream or its group was deleted. */
  get isDeleted(): boolean {
    return this.#isDeleted;
  }

  /** True if no call is changing the files. */
  get isIdle(): boolean {
    return this.#changes.count === 0;
  }

  isOpen(segment: LocalSegment): boolean {
    return segment === this.#open;
  }

  /** Finds the files that a previous process left. They get no more lines. */
  async find(streamId: string): Promise<void> {
    this.streamId = streamId;
    const names: readonly string[] = await readdir(this.#directory(streamId)).catch(emptyIfMissing);
    for (const name of names.toSorted()) {
      const digits = /^(\d{10})\.log$/.exec(name)?.[1];
      if (digits === undefined) continue;
      const path = join(this.#directory(streamId), name);
      const { size, mtimeMs } = await stat(path);
      this.segments.push({ segment: Number(digits), path, bytes: size, storedBytes: 0, lastWrittenMs: mtimeMs });
      this.#options.usage.bytes += size;
    }
  }

  /** Appends complete lines; concurrent calls are serialized. */
  append(lines: string): Promise<void> {
    return this.#changes.run(async () => {
      const { segmentBytesMax, makeSpace, nowMs, usage } = this.#options;
      for (const bytes of splitAtLineEnds(Buffer.from(lines), segmentBytesMax)) {
        await makeSpace(this, bytes.byteLength);
        if (this.#open !== null && this.#open.bytes + bytes.byteLength > segmentBytesMax) this.#open = null;
        const segment = (this.#open ??= await this.#begin());
        try {
          await appendFile(segment.path, bytes);
        } catch (error) {
          // The file may have a part of these lines. The next lines begin another file.
          this.#open = null;
          throw error;
        }
        segment.bytes += bytes.byteLength;
        usage.bytes += bytes.byteLength;
        segment.lastWrittenMs = nowMs();
      }
    });
  }

  /** Moves a file of complete lines into this stream, after its other segments. */
  adopt(path: string): Promise<void> {
    return this.#changes.run(async () => {
      const segment = await this.#begin();
      const { size, mtimeMs } = await stat(path);
      await rename(path, segment.path);
      Object.assign(segment, { bytes: size, lastWrittenMs: mtimeMs });
      this.#options.usage.bytes += size;
    });
  }

  /** Makes the next line begin another segment. */
  close(): Promise<void> {
    return this.#changes.run(async () => void (this.#open = null));
  }

  /** Deletes the local files of a deleted stream. Later appends are rejected. */
  remove(): Promise<void> {
    this.#isDeleted = true;
    return this.#changes.run(async () => {
      for (const segment of this.segments.slice()) await this.drop(segment);
    });
  }

  /** Deletes a local file, and closes its segment. No append to the segment may be in progress. */
  async drop(segment: LocalSegment): Promise<void> {
    this.forget(segment);
    await rm(segment.path, { force: true });
  }

  /** Removes a segment from this stream. The caller deletes the file. */
  forget(segment: LocalSegment): void {
    if (segment === this.#open) this.#open = null;
    const at = this.segments.indexOf(segment);
    if (at < 0) return;
    this.segments.splice(at, 1);
    this.#options.usage.bytes -= segment.bytes;
  }

  async #begin(): Promise<LocalSegment> {
    const { records, nowMs, segmentBytesMax, streamBytesMax } = this.#options;
    if (this.#isDeleted) throw new Error("the log stream was deleted");
    while (this.#byteLength() + segmentBytesMax > streamBytesMax && this.segments[0] !== undefined) {
      await this.drop(this.segments[0]);
    }
    if (this.#reserved.next === this.#reserved.end) {
      const { id, first } = await records.reserveSegments(this.groupId, this.name, nowMs());
      this.#reserved = { next: first, end: first + segmentsReserved };
      this.streamId = id;
      await mkdir(this.#directory(id), { recursive: true });
    }
    const number = this.#reserved.next++;
    const path = join(this.#directory(this.streamId as string), `${String(number).padStart(10, "0")}.log`);
    const segment = { segment: number, path, bytes: 0, storedBytes: 0, lastWrittenMs: nowMs() };
    this.segments.push(segment);
    return segment;
  }

  #byteLength(): number {
    return this.segments.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #directory(streamId: string): string {
    return join(this.#options.directory, this.groupId, streamId);
  }
}

/** Reads the complete lines of a local segment. */
export async function readLocalLines({ path, bytes }: LocalSegment): Promise<Buffer> {
  await using file = await open(path, "r");
  const content = Buffer.alloc(bytes);
  let length = 0;
  while (length < bytes) {
    const { bytesRead } = await file.read(content, length, bytes - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return content.subarray(0, content.lastIndexOf(10, length - 1) + 1);
}
