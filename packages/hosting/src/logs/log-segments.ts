import { appendFile, mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { SerialQueue } from "@galatea/base";
import { emptyIfMissing } from "./absent.ts";
import type { LogLine } from "./log-lines.ts";
import { firstLineOf, lastLineOf, SegmentFile } from "./log-chunks.ts";

/** Maximum number of files of a stream. When the newest file is full, the oldest is deleted. */
const segmentsMax = 4;

/**
 * One stream on disk: a directory of numbered, append-only files. Every call lists the directory, and no file stays
 * open between calls.
 */
export class LogSegments {
  readonly directory: string;
  readonly #segmentBytesMax: number;
  #newest: { readonly segment: number; byteLength: number } | null = null;
  readonly #changes = new SerialQueue();

  constructor(directory: string, streamBytesMax: number) {
    this.directory = directory;
    this.#segmentBytesMax = Math.floor(streamBytesMax / segmentsMax);
  }

  /** Appends complete lines; concurrent calls are serialized. */
  append(lines: string): Promise<void> {
    return this.#changes.run(async () => {
      for (const chunk of splitAtLineEnds(Buffer.from(lines), this.#segmentBytesMax)) await this.#append(chunk);
    });
  }

  /** Returns the files, ascending by number. */
  async files(): Promise<readonly SegmentFile[]> {
    const names = await readdir(this.directory).catch(emptyIfMissing);
    return names
      .map((name) => /^(\d{10})\.log$/.exec(name)?.[1])
      .filter((digits) => digits !== undefined)
      .map((digits) => new SegmentFile(Number(digits), join(this.directory, `${digits}.log`)))
      .sort((a, b) => a.segment - b.segment);
  }

  async firstLine(): Promise<LogLine | null> {
    return await firstLineOf(await this.files());
  }

  async lastLine(): Promise<LogLine | null> {
    return await lastLineOf(await this.files());
  }

  /**
   * Deletes the files whose last line is older than a time. Replaces a deleted newest file by an empty file with the
   * next number. File numbers therefore never repeat, and page tokens stay valid.
   */
  dropBefore(timeMs: number): Promise<void> {
    return this.#changes.run(async () => {
      const files = await this.files();
      for (const [index, file] of files.entries()) {
        const isNewest = index === files.length - 1;
        const last = await lastLineOf([file]);
        if (last === null ? isNewest : last.timestampMs >= timeMs) return;
        if (isNewest) {
          await appendFile(this.#pathOf(file.segment + 1), "");
          this.#newest = { segment: file.segment + 1, byteLength: 0 };
        }
        await rm(file.path, { force: true });
      }
    });
  }

  #pathOf(segment: number): string {
    return join(this.directory, `${String(segment).padStart(10, "0")}.log`);
  }

  async #append(bytes: Buffer): Promise<void> {
    this.#newest ??= await this.#open();
    if (this.#newest.byteLength > 0 && this.#newest.byteLength + bytes.byteLength > this.#segmentBytesMax) {
      this.#newest = { segment: this.#newest.segment + 1, byteLength: 0 };
      for (const old of (await this.files()).slice(0, -(segmentsMax - 1))) await rm(old.path, { force: true });
    }
    try {
      await appendFile(this.#pathOf(this.#newest.segment), bytes);
      this.#newest.byteLength += bytes.byteLength;
    } catch (error) {
      this.#newest = null;
      throw error;
    }
  }

  /**
   * Opens the newest file. Terminates a line that a crash left unfinished, so that the next line does not continue it.
   */
  async #open(): Promise<{ segment: number; byteLength: number }> {
    await mkdir(this.directory, { recursive: true });
    const last = (await this.files()).at(-1);
    if (last === undefined) return { segment: 1, byteLength: 0 };
    await using file = await open(last.path, "r+");
    const { size } = await file.stat();
    if (size === 0) return { segment: last.segment, byteLength: 0 };
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
    if (buffer[0] === 10) return { segment: last.segment, byteLength: size };
    await file.write("\n", size);
    return { segment: last.segment, byteLength: size + 1 };
  }

  async byteLength(): Promise<number> {
    let total = 0;
    for (const { path } of await this.files()) {
      const found = await stat(path).catch(emptyIfMissing);
      if (!Array.isArray(found)) total += found.size;
    }
    return total;
  }
}

/** Splits bytes at line ends into chunks that fit a segment. A line longer than a segment is a chunk of its own. */
export function* splitAtLineEnds(bytes: Buffer, byteLengthMax: number): Generator<Buffer> {
  let start = 0;
  while (start < bytes.byteLength) {
    const limit = start + byteLengthMax;
    let end = limit >= bytes.byteLength ? bytes.byteLength : bytes.lastIndexOf(10, limit - 1) + 1;
    if (end <= start) end = bytes.indexOf(10, limit) + 1 || bytes.byteLength;
    yield bytes.subarray(start, end);
    start = end;
  }
}
