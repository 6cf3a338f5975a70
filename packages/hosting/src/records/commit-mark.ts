import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { checksummedLine, parseChecksummedLine } from "@galatea/base";

const digits = 16;

/**
 * The number of commits of a database, in a file beside it. SQLite silently drops everything after a damaged page of
 * its write-ahead log: a database with fewer commits than its mark has lost some. Written after each commit, and never
 * synced: a mark that a power failure has reset claims less than there is.
 */
export class CommitMark implements Disposable {
  readonly #path: string;
  readonly #file: number;

  constructor(path: string) {
    this.#path = path;
    closeSync(openSync(path, "a"));
    this.#file = openSync(path, "r+");
  }

  /** Returns zero without a readable mark. */
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
