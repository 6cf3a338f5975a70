import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { checksummedLine, parseChecksummedLine } from "@galatea/base";

const digits = 16;

/**
 * The number of a database's commits, in a file next to the database. SQLite silently drops everything after a damaged
 * page of its write-ahead log. If a database has fewer commits than its mark, commits were lost. The mark is written
 * after each commit and never synced: a power failure can only make it too low.
 */
export class CommitMark implements Disposable {
  readonly #path: string;
  readonly #file: number;

  constructor(path: string) {
    this.#path = path;
    closeSync(openSync(path, "a"));
    this.#file = openSync(path, "r+");
  }

  /** Returns the number of commits; 0 if the mark is missing or damaged. */
  read(): number {
    const unsealed = parseChecksummedLine(readFileSync(this.#path));
    return unsealed === null ? 0 : Number(unsealed.text) || 0;
  }

  write(count: number): void {
    writeSync(this.#file, checksummedLine(String(count).padStart(digits, "0")), 0);
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}
