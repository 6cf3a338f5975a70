import { open, rename, rm, truncate } from "node:fs/promises";
import type { Clock, Logger } from "@galatea/base";
import { writePieces } from "./durable-file.ts";
import type { ObjectEntry } from "./object-entry.ts";
import { readRegister, type ReadRegister, type ReadRegisterOptions, type RegisterEnd } from "./register-reading.ts";
import { registerHeader, registerLine } from "./register-text.ts";

/** Lines are written together, this long after the first of them, or when they are so long. */
const gatherMs = 1000;
const gatherLength = 256 * 1024;
/** Of lines that wait for a disk which takes none; what comes beyond is left to the next start. */
const pendingLengthMax = 4 * 2 ** 20;
/** Lines of files that are gone, and entries without a line, that there may be in any register before it is written anew. */
const spareLines = 1000;
const entriesPerWrite = 500;

/** More lines than a register has of so many files, unless most of it is of files that are gone. */
export const registerLinesMax = (fileCount: number): number => 2 * (fileCount + spareLines) + 10_000;

export interface EntryRegisterOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The bucket's entries as they are now. */
  readonly entries: { readonly size: number; all(): Iterable<ObjectEntry> };
}

/**
 * A bucket's entries in one file, so that a start need not open the file of each object. A line says what an entry's file says, which never
 * changes and whose name never comes again: so lines may be in any order, and twice, and of files that are gone, of
 * which nothing is written here. What objects there are the folders say. A line that is missing, damaged or not yet written costs the next
 * start one file to open. Nothing of it is synced, nobody waits for it, and no write fails with it.
 */
export class EntryRegister implements AsyncDisposable {
  readonly #options: EntryRegisterOptions;
  #end: RegisterEnd | null = null;
  /** Entries that may have no line, beside those that are pending. */
  #uncovered = 0;
  /** After a failure: it is not tried again before so many lines are too many, or too few. */
  #sparedMin = 0;
  #pending: string[] = [];
  #pendingLength = 0;
  #gathering: Disposable | null = null;
  #working: Promise<void> | null = null;
  #isWritingAnew = false;
  #isClosed = false;
  #hasFailed = false;

  constructor(options: EntryRegisterOptions) {
    this.#options = options;
  }

  /** Once, before anything is written to the bucket: a file that is not to be gone on with is gone afterwards. */
  async read(options: ReadRegisterOptions): Promise<ReadRegister> {
    const { path } = this.#options;
    await rm(asideOf(path), { recursive: true, force: true });
    const found = await readRegister(path, options);
    this.#end = found.end;
    // Lines that were not read may name versions that are given out once more.
    if (found.end === null) await rm(path, { recursive: true, force: true });
    else await truncate(path, found.end.byteLength);
    return found;
  }

  /** Goes on after a start, in which so many entries were read from their own files. */
  begin(uncovered: number): void {
    this.#uncovered = uncovered;
    this.#workIfDue();
  }

  /** An entry whose file is on the disk, and which is among the bucket's entries. */
  add(entry: ObjectEntry): void {
    if (this.#isClosed) return;
    const isTaken = (this.#end !== null || this.#isWritingAnew) && this.#pendingLength <= pendingLengthMax;
    if (!isTaken) {
      this.#uncovered += 1;
      this.#workIfDue();
      return;
    }
    const line = registerLine(entry);
    this.#pending.push(line);
    this.#pendingLength += line.length;
    if (this.#pendingLength >= gatherLength) this.#work();
    else this.#gathering ??= this.#options.clock.timer(gatherMs, () => this.#work());
  }

  /** An entry is gone, and its file. */
  removed(): void {
    if (!this.#isClosed) this.#workIfDue();
  }

  /** What is pending is written first. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#work();
    await this.#working;
  }

  /** Lines of no use, and those that are missing. */
  #spared(): number {
    const covered = this.#options.entries.size - this.#uncovered;
    return (this.#end?.lineCount ?? 0) - covered + this.#uncovered;
  }

  #isDue(): boolean {
    const { size } = this.#options.entries;
    const spared = this.#spared();
    if (spared < this.#sparedMin) return false;
    return this.#end === null ? size > 0 : spared > spareLines + size;
  }

  #workIfDue(): void {
    if (this.#isDue()) this.#work();
  }

  #work(): void {
    this.#gathering?.[Symbol.dispose]();
    this.#gathering = null;
    this.#working ??= this.#writeAll().finally(() => (this.#working = null));
  }

  async #writeAll(): Promise<void> {
    for (;;) {
      if (this.#isDue()) await this.#writeAnew();
      else if (this.#pending.length === 0) return;
      else if (this.#end === null) this.#uncovered += this.#takePending().length;
      else await this.#append(this.#end);
    }
  }

  #takePending(): readonly string[] {
    const lines = this.#pending;
    this.#pending = [];
    this.#pendingLength = 0;
    return lines;
  }

  async #append({ byteLength, lineCount }: RegisterEnd): Promise<void> {
    const lines = this.#takePending();
    const bytes = Buffer.from(lines.join(""));
    try {
      await using file = await open(this.#options.path, "r+");
      // What an earlier write that failed has left behind the end is written over, or is lines as true as these.
      await writePieces(file, [bytes], { offset: byteLength, byteLength: bytes.byteLength });
      this.#end = { byteLength: byteLength + bytes.byteLength, lineCount: lineCount + lines.length };
      this.#hasFailed = false;
    } catch (error) {
      this.#uncovered += lines.length;
      this.#tell(error);
    }
  }

  /** The file before it stays until this one is whole. */
  async #writeAnew(): Promise<void> {
    const { path, entries } = this.#options;
    const uncovered = this.#uncovered + this.#takePending().length;
    this.#uncovered = 0;
    this.#isWritingAnew = true;
    const aside = asideOf(path);
    try {
      const end = await writeRegister(aside, [...entries.all()]);
      await rename(aside, path);
      this.#end = end;
      this.#sparedMin = 0;
      this.#hasFailed = false;
    } catch (error) {
      this.#uncovered += uncovered;
      this.#sparedMin = 2 * this.#spared() + spareLines;
      this.#tell(error);
      await rm(aside, { force: true }).catch((left: unknown) => this.#tell(left));
    } finally {
      this.#isWritingAnew = false;
    }
  }

  /** Once until it goes well again. */
  #tell(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const { path, logger } = this.#options;
    const message =
      "the register of a bucket's objects was not written: the next start reads the files of some of them";
    logger.warning(message, { path, error: String(error) });
  }
}

const asideOf = (path: string) => `${path}.new`;

async function writeRegister(path: string, entries: readonly ObjectEntry[]): Promise<RegisterEnd> {
  await using file = await open(path, "w");
  let byteLength = 0;
  const write = async (text: string) => {
    const bytes = Buffer.from(text);
    await writePieces(file, [bytes], { offset: byteLength, byteLength: bytes.byteLength });
    byteLength += bytes.byteLength;
  };
  await write(registerHeader);
  for (let at = 0; at < entries.length; at += entriesPerWrite) {
    const piece = entries.slice(at, at + entriesPerWrite);
    await write(piece.map(registerLine).join(""));
  }
  return { byteLength, lineCount: entries.length };
}
