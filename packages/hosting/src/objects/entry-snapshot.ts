import { lstat, open, rename, rm, type FileHandle } from "node:fs/promises";
import { checksummedLine, parseChecksummedLine, type Logger } from "@galatea/base";
import { writeBuffers } from "./durable-file.ts";
import { keyHash, type ObjectEntry } from "./object-entry.ts";

const header = checksummedLine(JSON.stringify({ entries: 1 }));
const entriesPerWrite = 500;
const readBytes = 2 ** 20;
/** An entry has a key and headers of some kilobytes at most. */
const lineBytesMax = 2 ** 20;
/** A snapshot is written after this many changes, and at least a tenth of the entries. */
const changesMin = 1000;

export interface EntrySnapshotOptions {
  readonly path: string;
  readonly logger: Logger;
  /** The bucket's current entries. */
  readonly entries: { readonly size: number; all(): Iterable<ObjectEntry> };
}

/** The content of a snapshot. */
export interface EntrySnapshotContent {
  /** The entries of existing files, by their keys' hashes. */
  readonly known: ReadonlyMap<string, ObjectEntry>;
  /** The highest version in it, including those of deleted files. */
  readonly versionMax: number;
}

/**
 * A bucket's entries in one file, so that a start need not open each object's file: on a disk that reads 1000 files per
 * second, 50,000 would take 50 s. The folders determine which objects exist, and the name of an entry's file is never
 * reused, so a line is correct or of a deleted file. A missing or damaged line costs the next start one file to open.
 * The snapshot is not synced, and no write fails because of it.
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

  /**
   * Reads the snapshot, and removes an incomplete one: an unread line may name a version that will be assigned again.
   */
  async read(isThere: (hash: string, version: number) => boolean): Promise<EntrySnapshotContent> {
    const { path } = this.#options;
    const known = new Map<string, ObjectEntry>();
    let versionMax = 0;
    const take = (entry: ObjectEntry) => {
      versionMax = Math.max(versionMax, entry.version);
      const hash = keyHash(entry.head.key);
      if (isThere(hash, entry.version)) known.set(hash, entry);
    };
    // A damaged snapshot, or a disk that cannot read it, does not stop the start.
    const isWhole = await readSnapshot(path, take).catch(() => false);
    if (!isWhole) {
      await rm(path, { recursive: true, force: true });
      this.#changeCount = Infinity;
    }
    await rm(asideOf(path), { recursive: true, force: true });
    return { known, versionMax };
  }

  /** Counts entries that the snapshot lacks, and deleted ones that it has. */
  changed(count = 1): void {
    this.#changeCount += count;
    const isDue = this.#changeCount > changesMin + this.#options.entries.size / 10;
    if (isDue && !this.#isClosed) this.#writing ??= this.#write().finally(() => (this.#writing = null));
  }

  /** Writes a snapshot that lacks more than a hundredth of the entries; the next start reads fewer files faster than this writes all lines. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#writing;
    if (this.#changeCount > this.#options.entries.size / 100) await this.#write();
  }

  /** Replaces the snapshot; the previous one stays until the new one is complete. */
  async #write(): Promise<void> {
    const { path, entries, logger } = this.#options;
    // Reset after a failure, too: the next attempt comes after as many further changes.
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

/** Resolves with whether the whole snapshot was read. */
async function readSnapshot(path: string, take: (entry: ObjectEntry) => void): Promise<boolean> {
  // A pipe at this path would block the open forever.
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
 * Yields the lines of a file, including a last one without line feed; each is valid until the next. Throws for a line
 * that is too long.
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
