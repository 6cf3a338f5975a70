import { open, rename, rm, truncate } from "node:fs/promises";
import type { Clock, Logger } from "@galatea/base";
import { writeBuffers } from "./durable-file.ts";
import type { ObjectEntry } from "./object-entry.ts";
import { readRegister, type ReadRegister, type ReadRegisterOptions, type RegisterEnd } from "./register-reading.ts";
import { registerHeader, registerLine } from "./register-text.ts";

/** Lines are written together after this time, or at this length. */
const gatherMs = 1000;
const gatherLength = 256 * 1024;
/** Maximum length of lines that wait for a failing disk; further ones are left to the next start. */
const pendingLengthMax = 4 * 2 ** 20;
/**
 * Number of lines of deleted files, and of entries without a line, that any register may have before it is rewritten.
 */
const spareLines = 1000;
const entriesPerWrite = 500;

/** Returns the number of lines above which most of a register is about deleted files. */
export const registerLinesMax = (fileCount: number): number => 2 * (fileCount + spareLines) + 10_000;

export interface EntryRegisterOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The bucket's current entries. */
  readonly entries: { readonly size: number; all(): Iterable<ObjectEntry> };
}

/**
 * A copy of all entries of a bucket in one file, so that a start need not open the file of each object. A line repeats
 * an entry's file, which never changes and whose name is never reused: so lines may be in any order, repeated, or about
 * deleted files, whose deletion is not recorded here. The folders determine which objects exist. A missing, damaged or
 * unwritten line costs the next start one file to open. The file is not synced, no caller waits for it, and no write
 * fails because of it.
 */
export class EntryRegister implements AsyncDisposable {
  readonly #options: EntryRegisterOptions;
  #end: RegisterEnd | null = null;
  /** Number of entries without a line, in addition to pending ones. */
  #uncovered = 0;
  /** After a failed rewrite, the number of surplus or missing lines before the next attempt. */
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

  /** Reads the register once, before any write to the bucket; removes a file that cannot be continued. */
  async read(options: ReadRegisterOptions): Promise<ReadRegister> {
    const { path } = this.#options;
    await rm(asideOf(path), { recursive: true, force: true });
    const found = await readRegister(path, options);
    this.#end = found.end;
    // Unread lines may name versions that will be assigned again.
    if (found.end === null) await rm(path, { recursive: true, force: true });
    else await truncate(path, found.end.byteLength);
    return found;
  }

  /** Starts writing; `uncovered` entries were read from their own files. */
  begin(uncovered: number): void {
    this.#uncovered = uncovered;
    this.#workIfDue();
  }

  /** Adds an entry whose file is on the disk and which is among the bucket's entries. */
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

  /** Reports that an entry and its file were removed. */
  removed(): void {
    if (!this.#isClosed) this.#workIfDue();
  }

  /** Writes the pending lines first. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#work();
    await this.#working;
  }

  /** Number of surplus and missing lines. */
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
      // Bytes that a failed write has left after the end are overwritten, or are valid lines.
      await writeBuffers(file, [bytes], { offset: byteLength, byteLength: bytes.byteLength });
      this.#end = { byteLength: byteLength + bytes.byteLength, lineCount: lineCount + lines.length };
      this.#hasFailed = false;
    } catch (error) {
      this.#uncovered += lines.length;
      this.#tell(error);
    }
  }

  /** Replaces the file; the previous one stays until the new one is complete. */
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

  /** Logs the first of consecutive failures. */
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
    await writeBuffers(file, [bytes], { offset: byteLength, byteLength: bytes.byteLength });
    byteLength += bytes.byteLength;
  };
  await write(registerHeader);
  for (let at = 0; at < entries.length; at += entriesPerWrite) {
    const piece = entries.slice(at, at + entriesPerWrite);
    await write(piece.map(registerLine).join(""));
  }
  return { byteLength, lineCount: entries.length };
}
