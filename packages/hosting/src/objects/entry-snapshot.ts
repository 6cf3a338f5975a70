import { lstat, open, rename, rm, type FileHandle } from "node:fs/promises";
import { checksummedLine, parseChecksummedLine, type Logger } from "@galatea/base";
import { writeBuffers } from "./durable-file.ts";
import { keyHash, type ObjectEntry } from "./object-entry.ts";

const header = checksummedLine(JSON.stringify({ entries: 1 }));
const entriesPerWrite = 500;
const readBytes = 2 ** 20;
/** Maximum bytes of a line. Keys and headers of one entry have only a few kilobytes. */
const lineBytesMax = 2 ** 20;
/** A snapshot is written after this number of changes plus a tenth of the number of entries. */
const changesMin = 1000;

export interface EntrySnapshotOptions {
  readonly path: string;
  readonly logger: Logger;
  /** The bucket's current entries. */
  readonly entries: { readonly size: number; all(): Iterable<ObjectEntry> };
}

/** The content of a snapshot. */
export interface EntrySnapshotContent {
  /** The entries whose files exist, by the hash of the key. */
  readonly known: ReadonlyMap<string, ObjectEntry>;
  /** The highest version in the snapshot, including entries whose files were deleted. */
  readonly versionMax: number;
}

/**
 * A copy of a bucket's entries in one file, so that a start does not open each object's file. On a disk that reads 1000 files per second,
 * 50,000 objects would take 50 s. The folders, not the snapshot, determine which objects exist. File names of entries are never reused, so a
 * line is either correct or belongs to a deleted file. For a missing or damaged line, the next start opens one file. The snapshot is not
 * synced, and a failed write of it fails no other write.
 */
export class EntrySnapshot implements AsyncDisposable {
  readonly #options: EntrySnapshotOptions;
  #changeCount = 0;
  #writing: Promise<void> | null = null;
  #isClosed = false;
  #hasFailed = false;

  constructor(options: EntrySnapshotOptions) {
    this.#options = options;
  }

  /** Reads the snapshot, and removes it if it is incomplete. Otherwise, a version in an unread line could be assigned again. */
  async read(isThere: (hash: string, version: number) => boolean): Promise<EntrySnapshotContent> {
    const { path } = this.#options;
    const known = new Map<string, ObjectEntry>();
    let versionMax = 0;
    const take = (entry: ObjectEntry) => {
      versionMax = Math.max(versionMax, entry.version);
      const hash = keyHash(entry.head.key);
      if (isThere(hash, entry.version)) known.set(hash, entry);
    };
    // A damaged or unreadable snapshot must not prevent the start.
    const isWhole = await readSnapshot(path, take).catch(() => false);
    if (!isWhole) {
      await rm(path, { recursive: true, force: true });
      this.#changeCount = Infinity;
    }
    await rm(asideOf(path), { recursive: true, force: true });
    return { known, versionMax };
  }

  /**
   * Counts changes since the last snapshot: new entries that it lacks and deleted entries that it contains. Writes a new snapshot after enough
   * changes.
   */
  changed(count = 1): void {
    this.#changeCount += count;
    const isDue = this.#changeCount > changesMin + this.#options.entries.size / 10;
    if (isDue && !this.#isClosed) this.#writing ??= this.#write().finally(() => (this.#writing = null));
  }

  /**
   * Writes a new snapshot if more than one percent of the entries have changed. With fewer changes, reading the changed files at the next
   * start is faster.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#writing;
    if (this.#changeCount > this.#options.entries.size / 100) await this.#write();
  }

  /** Replaces the snapshot. The previous one is kept until the new one is complete. */
  async #write(): Promise<void> {
    const { path, entries, logger } = this.#options;
    // Reset even if the write fails, so that the next attempt follows after the same number of changes.
    this.#changeCount = 0;
    const aside = asideOf(path);
    try {
      await writeSnapshot(aside, [...entries.all()]);
      await rename(aside, path);
      this.#hasFailed = false;
    } catch (error) {
      const message =
        "the snapshot of a bucket's entries was not written: the next start reads the files of some objects";
      if (!this.#hasFailed) logger.warning(message, { path, error: String(error) });
      this.#hasFailed = true;
      await rm(aside, { force: true }).catch(() => undefined);
    }
  }
}

const asideOf = (path: string) => `${path}.new`;

async function writeSnapshot(path: string, entries: readonly ObjectEntry[]): Promise<void> {
  await using file = await open(path, "w");
  let offset = 0;
  const write = async (lines: readonly string[]) => {
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
    await writeBuffers(file, [bytes], { offset, byteLength: bytes.byteLength });
    offset += bytes.byteLength;
  };
  await write([header]);
  for (let at = 0; at < entries.length; at += entriesPerWrite) {
    await write(entries.slice(at, at + entriesPerWrite).map((entry) => checksummedLine(JSON.stringify(entry))));
  }
}

/** Resolves with true if the complete snapshot was read. */
async function readSnapshot(path: string, take: (entry: ObjectEntry) => void): Promise<boolean> {
  // Opening a named pipe at this path would block forever.
  if (!(await lstat(path)).isFile()) return false;
  await using file = await open(path, "r");
  let isWhole = true;
  let isHeader = true;
  for await (const line of linesOf(file)) {
    if (isHeader && line.toString() !== header) return false;
    if (!isHeader) {
      const read = parseChecksummedLine(line);
      if (read === null || read.isRepaired) isWhole = false;
      else take(JSON.parse(read.text) as ObjectEntry);
    }
    isHeader = false;
  }
  return isWhole && !isHeader;
}

/**
 * Yields the lines of a file, including a last line without line feed. Each line is valid until the next one is requested. Throws if a line is
 * too long.
 */
async function* linesOf(file: FileHandle): AsyncGenerator<Buffer> {
  const buffer = Buffer.allocUnsafe(readBytes + lineBytesMax);
  let kept = 0;
  for (let at = 0; ;) {
    const { bytesRead } = await file.read(buffer, kept, readBytes, at);
    if (bytesRead === 0) break;
    at += bytesRead;
    const filled = buffer.subarray(0, kept + bytesRead);
    let start = 0;
    for (let end = 0; (end = filled.indexOf(10, start)) >= 0; start = end + 1) yield filled.subarray(start, end);
    kept = filled.copy(buffer, 0, start);
    if (kept > lineBytesMax) throw new Error("a line is too long");
  }
  if (kept > 0) yield buffer.subarray(0, kept);
}
