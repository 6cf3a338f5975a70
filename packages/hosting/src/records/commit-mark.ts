import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { checksummedLine, parseChecksummedLine } from "@galatea/base";

const digits = 16;

/**
 * How many commits a database has had, kept beside it. SQLite forgets everything behind a damaged place of its write-ahead log
 * without a word: a database that counts less than its mark has lost commits. Written after each commit, and never synced: a mark
 * that a power failure has set back claims less than there is.
 */
export class CommitMark implements Disposable {
  readonly #path: string;
  readonly #file: number;

  constructor(path: string) {
    this.#path = path;
    closeSync(openSync(path, "a"));
    this.#file = openSync(path, "r+");
  }

  /** Zero where there is none that can be read. */
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
