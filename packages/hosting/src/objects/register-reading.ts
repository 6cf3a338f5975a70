import { lstat, open, type FileHandle } from "node:fs/promises";
import { hashOf, type ObjectEntry } from "./object-entry.ts";
import { parseRegisterLine, registerHeader } from "./register-text.ts";

/** The content of a register's file. */
export interface ReadRegister {
  /** The entries of existing files, by their keys' hashes. */
  readonly known: ReadonlyMap<string, ObjectEntry>;
  /** The highest version that it names, including those of deleted files. */
  readonly versionMax: number;
  /** Position of its next line; null if the file is damaged or absent and has to be rewritten. */
  readonly end: RegisterEnd | null;
}

export interface RegisterEnd {
  readonly byteLength: number;
  readonly lineCount: number;
}

export interface ReadRegisterOptions {
  /** Returns whether the folders have the file of this version. */
  readonly isThere: (hash: string, version: number) => boolean;
  /** Maximum number of lines that are read: further ones would be of deleted files. */
  readonly linesMax: number;
}

const pieceBytes = 2 ** 20;
/** An entry has a key and headers of some kilobytes at most. */
const lineBytesMax = 2 ** 20;
/** Average over all lines. */
const meanBytesMax = 16 * 1024;

/**
 * Reads a register. Never rejects for its content or for a failed read: missing entries are read from the objects' own
 * files.
 */
export async function readRegister(path: string, options: ReadRegisterOptions): Promise<ReadRegister> {
  const reading = new Reading(options);
  try {
    // Opening a pipe would wait for ever.
    if (!(await lstat(path)).isFile()) return reading.result(false);
    await using file = await open(path, "r");
    return reading.result(await reading.take(file));
  } catch {
    return reading.result(false);
  }
}

class Reading {
  readonly #options: ReadRegisterOptions;
  readonly #known = new Map<string, ObjectEntry>();
  #versionMax = 0;
  #lineCount = 0;
  #wholeBytes = 0;
  #isSound = true;

  constructor(options: ReadRegisterOptions) {
    this.#options = options;
  }

  /** Resolves with whether all of it was read. */
  async take(file: FileHandle): Promise<boolean> {
    const bytesMax = (this.#options.linesMax + 1) * meanBytesMax;
    const piece = Buffer.allocUnsafe(pieceBytes + lineBytesMax);
    let kept = 0;
    for (let at = 0; ;) {
      const { bytesRead } = await file.read(piece, kept, pieceBytes, at);
      // After the last line break is the rest of an interrupted write.
      if (bytesRead === 0) return this.#isSound && this.#wholeBytes > 0;
      at += bytesRead;
      const filled = kept + bytesRead;
      const used = this.#lines(piece.subarray(0, filled));
      if (used === null || at > bytesMax || filled - used > lineBytesMax) return false;
      piece.copyWithin(0, used, filled);
      kept = filled - used;
    }
  }

  /** Returns the number of bytes of the complete lines; null if the rest of the file is invalid. */
  #lines(bytes: Buffer): number | null {
    let start = 0;
    for (let end = 0; (end = bytes.indexOf(10, start)) >= 0; start = end + 1) {
      if (!this.#line(bytes.subarray(start, end))) return null;
      this.#wholeBytes += end + 1 - start;
    }
    return start;
  }

  #line(line: Buffer): boolean {
    if (this.#wholeBytes === 0) return line.toString() === registerHeader.trimEnd();
    if (this.#lineCount >= this.#options.linesMax) return false;
    this.#lineCount += 1;
    const entry = parseRegisterLine(line);
    if (entry === null) {
      this.#isSound = false;
      return true;
    }
    this.#versionMax = Math.max(this.#versionMax, entry.version);
    const hash = hashOf(entry.head.key);
    if (this.#options.isThere(hash, entry.version)) this.#known.set(hash, entry);
    return true;
  }

  result(isWhole: boolean): ReadRegister {
    const end = isWhole ? { byteLength: this.#wholeBytes, lineCount: this.#lineCount } : null;
    return { known: this.#known, versionMax: this.#versionMax, end };
  }
}
