import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import type { JournalBeginning } from "./journal-reading.ts";
import {
  commitLine,
  headerLine,
  parseJournal,
  rowLine,
  type JournalCommit,
  type JournalContents,
} from "./journal-text.ts";
import { allRows, appliedMigrations, commitCount } from "./tables.ts";

/** A journal that has grown by this and by twice its beginning is begun anew. */
const grownBytesMin = 4 * 2 ** 20;
const linesPerWrite = 1000;
/**
 * The second copy of a database: all rows as they were at its beginning, then every commit since, each line with a checksum. It is
 * begun anew when it has grown; the one before it stays beside it. A commit's line is written after the commit: a journal is never
 * ahead of its database, unless the database has lost something.
 */
export class Journal implements Disposable {
  readonly path: string;
  #file: number | null = null;
  #beginning: JournalBeginning = { byteLength: 0, sum: 0, commitCount: 0 };
  #grownBytes = 0;

  constructor(path: string) {
    this.path = path;
  }

  /** Null when there is none. */
  read(): JournalContents | null {
    try {
      return parseJournal(readFileSync(this.path));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  }

  /** Adds a commit. Where that fails the journal is not to be gone on with: the next commit begins a new one. */
  append(commit: JournalCommit, database: DatabaseSync): void {
    if (this.#file === null || this.#grownBytes > Math.max(grownBytesMin, 2 * this.#beginning.byteLength)) {
      this.begin(database);
      return;
    }
    try {
      this.#grownBytes += writeWhole(this.#file, commitLine(commit));
    } catch (error) {
      this.#close();
      throw error;
    }
  }

  /** Null for one that is not to be gone on with. The same one as long as it is the same journal. */
  get beginning(): JournalBeginning | null {
    return this.#file === null ? null : this.#beginning;
  }

  /** Goes on with the journal that is there, which is whole and begins so. */
  resume(beginning: JournalBeginning): void {
    this.#file = openSync(this.path, "a");
    this.#beginning = beginning;
    this.#grownBytes = fstatSync(this.#file).size - beginning.byteLength;
  }

  /** Writes down all that the database holds now; the former journal is kept as `<path>.former`. */
  begin(database: DatabaseSync): void {
    this.#close();
    const aside = `${this.path}.new`;
    rmSync(aside, { force: true });
    const file = openSync(aside, "ax");
    try {
      const rows = [...allRows(database)];
      const migrations = appliedMigrations(database);
      let [byteLength, sum] = [0, 0];
      const write = (text: string) => {
        sum = crc32(text, sum);
        byteLength += writeWhole(file, text);
      };
      const count = commitCount(database);
      write(headerLine({ commitCount: count, rowCount: rows.length, migrations }));
      for (let at = 0; at < rows.length; at += linesPerWrite) {
        const lines = rows.slice(at, at + linesPerWrite).map(rowLine);
        write(lines.join(""));
      }
      fsyncSync(file);
      if (existsSync(this.path)) {
        rmSync(`${this.path}.former`, { force: true });
        linkSync(this.path, `${this.path}.former`);
      }
      renameSync(aside, this.path);
      syncDirectory(dirname(this.path));
      this.#beginning = { byteLength, sum, commitCount: count };
      this.#grownBytes = 0;
      this.#file = file;
    } catch (error) {
      closeSync(file);
      rmSync(aside, { force: true });
      throw error;
    }
  }

  [Symbol.dispose](): void {
    if (this.#file !== null) fdatasyncSync(this.#file);
    this.#close();
  }

  #close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }
}

function writeWhole(file: number, text: string): number {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
  return bytes.length;
}

export function syncDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}
