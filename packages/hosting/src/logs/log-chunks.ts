import { open, type FileHandle } from "node:fs/promises";
import { emptyIfMissing } from "./absent.ts";
import { parseLogLines, type LogLine } from "./log-lines.ts";
import type { Segment, SegmentBytes } from "./log-storage.ts";

/** Bytes of a file that are read and parsed in one step, which blocks the event loop for about two milliseconds. */
const chunkBytes = 256 * 1024;

/** A segment in a file. */
export class SegmentFile implements Segment {
  readonly segment: number;
  readonly path: string;
  readonly times = null;

  constructor(segment: number, path: string) {
    this.segment = segment;
    this.path = path;
  }

  async open(): Promise<SegmentBytes | null> {
    const file = await open(this.path, "r").catch(emptyIfMissing);
    return Array.isArray(file) ? null : new OpenSegmentFile(file);
  }
}

class OpenSegmentFile implements SegmentBytes {
  readonly #file: FileHandle;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async byteLength(): Promise<number> {
    return (await this.#file.stat()).size;
  }

  async read(offset: number, byteLength: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(byteLength);
    let length = 0;
    while (length < byteLength) {
      const { bytesRead } = await this.#file.read(bytes, length, byteLength - length, offset + length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#file[Symbol.asyncDispose]();
  }
}

/**
 * Yields the lines of a segment that begin at or after an offset, in chunks. Other work can run on the event loop between
 * two chunks.
 */
export async function* readLinesFrom(source: Segment, offset: number): AsyncGenerator<readonly LogLine[]> {
  const { segment } = source;
  await using content = await source.open();
  if (content === null) return;
  // The byte before the offset shows whether a line begins there.
  let start = Math.max(0, offset - 1);
  let isInLine = offset > 0;
  let rest: Buffer = Buffer.alloc(0);
  for (;;) {
    const chunk = await content.read(start + rest.byteLength, chunkBytes);
    if (chunk.byteLength === 0) return;
    const bytes = Buffer.concat([rest, chunk]);
    const from = isInLine ? bytes.indexOf(10) + 1 : 0;
    if (isInLine && from === 0) {
      start += bytes.byteLength;
      continue;
    }
    isInLine = false;
    const end = Math.max(from, bytes.lastIndexOf(10) + 1);
    yield [...parseLogLines(bytes.subarray(from, end), { segment, offset: start + from })];
    rest = bytes.subarray(end);
    start += end;
  }
}

/** Yields the lines of a segment that begin before an offset (null: all lines) in chunks, last line first. */
export async function* readLinesBefore(source: Segment, offset: number | null): AsyncGenerator<readonly LogLine[]> {
  const { segment } = source;
  await using content = await source.open();
  if (content === null || offset === 0) return;
  const size = await content.byteLength();
  let end = offset === null || offset >= size ? size : await lineEnd(content, offset - 1);
  // The last bytes of a line whose first bytes have not been read yet.
  let tail: Buffer = Buffer.alloc(0);
  while (end > 0) {
    const start = Math.max(0, end - chunkBytes);
    const bytes = Buffer.concat([await content.read(start, end - start), tail]);
    const from = start === 0 ? 0 : bytes.indexOf(10) + 1;
    if (start === 0 || from > 0) {
      yield [...parseLogLines(bytes.subarray(from), { segment, offset: start + from })].reverse();
    }
    tail = start === 0 || from > 0 ? bytes.subarray(0, from) : bytes;
    end = start;
  }
}

/** Returns the offset after the line that contains the byte at `offset`. */
async function lineEnd(content: SegmentBytes, offset: number): Promise<number> {
  for (let start = offset; ;) {
    const chunk = await content.read(start, chunkBytes);
    const end = chunk.indexOf(10);
    if (end >= 0) return start + end + 1;
    start += chunk.byteLength;
    if (chunk.byteLength === 0) return start;
  }
}

/** Returns the first line of segments in ascending order. */
export async function firstLineOf(segments: readonly Segment[]): Promise<LogLine | null> {
  for (const segment of segments) {
    for await (const [first] of readLinesFrom(segment, 0)) if (first !== undefined) return first;
  }
  return null;
}

/** Returns the last line of segments in ascending order. */
export async function lastLineOf(segments: readonly Segment[]): Promise<LogLine | null> {
  for (const segment of segments.toReversed()) {
    for await (const [last] of readLinesBefore(segment, null)) if (last !== undefined) return last;
  }
  return null;
}
