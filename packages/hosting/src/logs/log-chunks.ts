import { open, type FileHandle } from "node:fs/promises";
import { emptyIfMissing } from "./absent.ts";
import { parseLogLines, type LogLine } from "./log-lines.ts";

/** Bytes of a file that are read and parsed in one step, which blocks the event loop for about two milliseconds. */
const chunkBytes = 256 * 1024;

export interface SegmentFile {
  readonly segment: number;
  readonly path: string;
}

/**
 * Yields the lines of a file that begin at or after an offset, in chunks. Other work can run on the event loop between
 * two chunks.
 */
export async function* readLinesFrom(
  { segment, path }: SegmentFile,
  offset: number,
): AsyncGenerator<readonly LogLine[]> {
  await using file = await opened(path);
  if (file === null) return;
  // The byte before the offset shows whether a line begins there.
  let start = Math.max(0, offset - 1);
  let isInLine = offset > 0;
  let rest: Buffer = Buffer.alloc(0);
  for (;;) {
    const chunk = await readAt(file, start + rest.byteLength, chunkBytes);
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

/** Yields the lines of a file that begin before an offset (null: all lines) in chunks, last line first. */
export async function* readLinesBefore(
  { segment, path }: SegmentFile,
  offset: number | null,
): AsyncGenerator<readonly LogLine[]> {
  await using file = await opened(path);
  if (file === null || offset === 0) return;
  const { size } = await file.stat();
  let end = offset === null || offset >= size ? size : await lineEnd(file, offset - 1);
  // The last bytes of a line whose first bytes have not been read yet.
  let tail: Buffer = Buffer.alloc(0);
  while (end > 0) {
    const start = Math.max(0, end - chunkBytes);
    const bytes = Buffer.concat([await readAt(file, start, end - start), tail]);
    const from = start === 0 ? 0 : bytes.indexOf(10) + 1;
    if (start === 0 || from > 0) {
      yield [...parseLogLines(bytes.subarray(from), { segment, offset: start + from })].reverse();
    }
    tail = start === 0 || from > 0 ? bytes.subarray(0, from) : bytes;
    end = start;
  }
}

/** Returns the offset after the line that contains the byte at `offset`. */
async function lineEnd(file: FileHandle, offset: number): Promise<number> {
  for (let start = offset; ;) {
    const chunk = await readAt(file, start, chunkBytes);
    const end = chunk.indexOf(10);
    if (end >= 0) return start + end + 1;
    start += chunk.byteLength;
    if (chunk.byteLength === 0) return start;
  }
}

async function opened(path: string): Promise<FileHandle | null> {
  const file = await open(path, "r").catch(emptyIfMissing);
  return Array.isArray(file) ? null : file;
}

/** Reads up to `byteLength` bytes. Returns fewer only at the end of the file. */
async function readAt(file: FileHandle, offset: number, byteLength: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(byteLength);
  let length = 0;
  while (length < byteLength) {
    const { bytesRead } = await file.read(bytes, length, byteLength - length, offset + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}
