import { createHash, randomUUID } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  readdirSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { SharedContent } from "./archive.ts";

/**
 * Maximum number of shared files of equal length that are compared with an incoming file. Above it, the incoming file
 * is written and then looked up by its hash.
 */
const candidateCountMax = 32;
const compareBytes = 256 * 1024;

/** Mode of a shared file. It is read-only, because a write would change every tree that links to it. */
const sharedMode = 0o444;

/**
 * Writes one file of a tree as a hard link to `<byteLength>/<sha256>` in the content directory. Equal files of
 * different archives are thus stored once. The content directory has no other index; any thread or process may add
 * files. A file is linked only after all its bytes were compared with the archive's. Otherwise, a file that was altered
 * on disk would spread to later archives. The file's change time cannot replace this comparison, because each new link
 * updates it. Synchronous: it runs in the unpacking threads.
 */
export class SharedFileWriter {
  readonly #directory: string;
  readonly #path: string;
  readonly #byteLength: number;
  #hash = createHash("sha256");
  #written = 0;
  /** Open shared files that equal the bytes received so far. If none is left, `#output` is open. */
  #candidates: { readonly id: string; readonly fd: number }[];
  #output = -1;

  /** `contentDirectory` and `path` must be on the same file system. */
  constructor(contentDirectory: string, path: string, byteLength: number) {
    this.#directory = join(contentDirectory, String(byteLength));
    this.#path = path;
    this.#byteLength = byteLength;
    this.#candidates = openCandidates(this.#directory);
    if (this.#candidates.length === 0) this.#output = openSync(path, "wx", 0o644);
  }

  write(bytes: Buffer): void {
    if (this.#output >= 0) {
      this.#hash.update(bytes);
      writeFully(this.#output, bytes);
    } else {
      this.#compare(bytes);
    }
    this.#written += bytes.length;
  }

  finish(): SharedContent {
    const match = this.#candidates[0];
    if (match !== undefined) {
      this.#linkOrCopy(match);
      this.close();
      return { id: match.id, byteLength: this.#byteLength };
    }
    fchmodSync(this.#output, sharedMode);
    closeSync(this.#output);
    this.#output = -1;
    const id = this.#hash.digest("hex");
    this.#publish(id);
    return { id, byteLength: this.#byteLength };
  }

  close(): void {
    for (const candidate of this.#candidates) closeSync(candidate.fd);
    this.#candidates = [];
    if (this.#output >= 0) closeSync(this.#output);
    this.#output = -1;
  }

  /**
   * Compares a chunk with all candidates and keeps the equal ones. If none is equal, copies the bytes so far from the
   * last candidate and starts to write a new file.
   */
  #compare(bytes: Buffer): void {
    const window = Buffer.allocUnsafe(Math.min(compareBytes, bytes.length));
    const equal = this.#candidates.filter((candidate) => {
      for (let offset = 0; offset < bytes.length; offset += window.length) {
        const part = bytes.subarray(offset, offset + window.length);
        const count = readFully(candidate.fd, window.subarray(0, part.length), this.#written + offset);
        if (count !== part.length || window.compare(part, 0, part.length, 0, part.length) !== 0) return false;
      }
      return true;
    });
    if (equal.length > 0) {
      for (const candidate of this.#candidates) if (!equal.includes(candidate)) closeSync(candidate.fd);
      this.#candidates = equal;
      return;
    }
    const source = this.#candidates[0]?.fd ?? -1;
    this.#output = openSync(this.#path, "wx", 0o644);
    for (const part of partsOf(source, this.#written)) {
      this.#hash.update(part);
      writeFully(this.#output, part);
    }
    for (const candidate of this.#candidates) closeSync(candidate.fd);
    this.#candidates = [];
    this.#hash.update(bytes);
    writeFully(this.#output, bytes);
  }

  #linkOrCopy(match: { readonly id: string; readonly fd: number }): void {
    try {
      linkSync(join(this.#directory, match.id), this.#path);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      // ENOENT: the file was deleted after it was opened. EMLINK: the file system's link limit (65,000 on ext4). In
      // both cases, the bytes are copied from the open file.
      if (code !== "ENOENT" && code !== "EMLINK") throw error;
      this.#output = openSync(this.#path, "wx", 0o644);
      for (const part of partsOf(match.fd, this.#byteLength)) writeFully(this.#output, part);
      fchmodSync(this.#output, sharedMode);
    }
  }

  #publish(id: string): void {
    const shared = join(this.#directory, id);
    mkdirSync(this.#directory, { recursive: true });
    try {
      linkSync(this.#path, shared);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code === "ENOENT" || code === "EMLINK") return;
      if (code !== "EEXIST") throw error;
      this.#meetTwin(shared);
    }
  }

  /**
   * Handles an existing shared file with the same hash. If the bytes are equal, the tree links to that file. Otherwise
   * that file was altered on disk, and the new file replaces it, so that no later tree links to altered bytes.
   */
  #meetTwin(shared: string): void {
    try {
      const [source, target] = haveEqualBytes(shared, this.#path) ? [shared, this.#path] : [this.#path, shared];
      const other = `${this.#path}.${randomUUID()}`;
      linkSync(source, other);
      renameSync(other, target);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (code !== "ENOENT" && code !== "EMLINK") throw error;
    }
  }
}

/** Returns true if two files have equal content. */
function haveEqualBytes(a: string, b: string): boolean {
  const left = openSync(a, "r");
  try {
    const right = openSync(b, "r");
    try {
      const leftBytes = Buffer.allocUnsafe(compareBytes);
      const rightBytes = Buffer.allocUnsafe(compareBytes);
      for (let offset = 0; ; offset += compareBytes) {
        const count = readFully(left, leftBytes, offset);
        if (count !== readFully(right, rightBytes, offset)) return false;
        if (leftBytes.compare(rightBytes, 0, count, 0, count) !== 0) return false;
        if (count < compareBytes) return true;
      }
    } finally {
      closeSync(right);
    }
  } finally {
    closeSync(left);
  }
}

/** Removes each file of `contents` that no tree links to. Call it after a tree was deleted. */
export function deleteUnlinkedContents(contentDirectory: string, contents: readonly SharedContent[]): void {
  for (const { id, byteLength } of contents) {
    const path = join(contentDirectory, String(byteLength), id);
    try {
      // An unpacking thread may link the file between the two calls. Its tree keeps the bytes; only the shared name is
      // lost.
      if (statSync(path).nlink === 1) unlinkSync(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
}

function openCandidates(directory: string): { id: string; fd: number }[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  const open: { id: string; fd: number }[] = [];
  for (const id of names.slice(0, candidateCountMax)) {
    try {
      open.push({ id, fd: openSync(join(directory, id), "r") });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  return open;
}

/**
 * Yields the first `byteLength` bytes of an open file in chunks. All chunks use one buffer, so each is valid only until
 * the next.
 */
function* partsOf(fd: number, byteLength: number): Generator<Buffer> {
  const buffer = Buffer.allocUnsafe(compareBytes);
  for (let offset = 0; offset < byteLength;) {
    const count = readFully(fd, buffer.subarray(0, Math.min(buffer.length, byteLength - offset)), offset);
    if (count === 0) throw new Error("a shared file shrank while it was compared");
    yield buffer.subarray(0, count);
    offset += count;
  }
}

function readFully(fd: number, into: Buffer, position: number): number {
  let filled = 0;
  while (filled < into.length) {
    const count = readSync(fd, into, filled, into.length - filled, position + filled);
    if (count === 0) break;
    filled += count;
  }
  return filled;
}

export function writeFully(fd: number, bytes: Buffer): void {
  let written = 0;
  while (written < bytes.length) written += writeSync(fd, bytes, written);
}
