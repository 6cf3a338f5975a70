import { createHash, type Hash } from "node:crypto";
import { chmodSync, closeSync, fchmodSync, linkSync, mkdirSync, openSync, realpathSync, symlinkSync } from "node:fs";
import { join, posix } from "node:path";
import { sharedDirectoryMode, sharedFileMode } from "@galatea/base";
import { ArchiveError, type ArchiveLimits, type SharedContent, type UnpackedArchive } from "./archive.ts";
import { SharedFileWriter, writeFully } from "./archive-content.ts";

/** An entry of an archive, from its header. */
export type ArchiveEntry =
  | { readonly kind: "file"; readonly path: string; readonly byteLength: number; readonly executable: boolean }
  | { readonly kind: "directory"; readonly path: string }
  | { readonly kind: "symlink"; readonly path: string; readonly target: string }
  | { readonly kind: "hardlink"; readonly path: string; readonly target: string };

export interface ArchiveTreeOptions {
  /** An existing, empty directory. It must be empty, so that every path in it was created by the archive. */
  readonly destination: string;
  /**
   * Directory in which equal files of at least `sharedBytesMin` bytes are stored once. Null: files are not shared
   * between trees.
   */
  readonly contentDirectory: string | null;
  readonly sharedBytesMin: number;
  readonly limits: ArchiveLimits;
}

interface OpenFile {
  readonly path: string;
  readonly byteLength: number;
  readonly output:
    | { readonly kind: "own"; readonly fd: number; readonly hash: Hash }
    | { readonly kind: "shared"; readonly writer: SharedFileWriter };
}

type Made = "file" | "directory" | "symlink";

/**
 * Builds the tree of one archive. The parent of each entry must be a directory that this archive created, so that no
 * link can redirect a later write. Calls follow the archive's order: the data of a file comes between its entry and
 * `fileEnd`. Synchronous: it runs in an unpacking thread.
 */
export class ArchiveTree {
  readonly #options: ArchiveTreeOptions;
  readonly #generated = new Map<string, Made>();
  readonly #files: { path: string; byteLength: number; sha256: string }[] = [];
  readonly #contents = new Map<string, SharedContent>();
  readonly #locations: { path: string; linkTarget: string | null }[] = [];
  #file: OpenFile | null = null;
  #expandedBytes = 0;
  #ownBytes = 0;
  #entryCount = 0;

  constructor(options: ArchiveTreeOptions) {
    this.#options = options;
  }

  get expandedBytes(): number {
    return this.#expandedBytes;
  }

  entry(entry: ArchiveEntry): void {
    const { limits } = this.#options;
    this.#entryCount += 1;
    if (this.#entryCount > limits.entryCountMax) {
      throw new ArchiveError("limit", `the archive holds more than ${limits.entryCountMax} entries`);
    }
    const path = safePath(entry.path, limits);
    if (path === "") {
      if (entry.kind === "directory") return;
      throw new ArchiveError("unsafe", `the archive holds an entry without a name: ${printablePath(entry.path)}`);
    }
    this.#makeParents(path);
    const before = this.#generated.get(path);
    if (entry.kind === "directory" && before === "directory") return;
    if (before !== undefined) throw new ArchiveError("clash", `the archive holds ${printablePath(path)} twice`);
    switch (entry.kind) {
      case "directory":
        this.#makeDirectory(path);
        return;
      case "file":
        this.#beginFile(path, entry);
        return;
      case "symlink":
        this.#symlink(path, entry.target);
        return;
      case "hardlink":
        this.#hardlink(path, entry.target);
    }
  }

  /** Writes bytes of the current file. `bytes` may be reused after the call. */
  data(bytes: Buffer): void {
    this.#expandedBytes += bytes.length;
    const { limits } = this.#options;
    if (this.#expandedBytes > limits.expandedBytesMax) {
      throw new ArchiveError("limit", `the archive expands to more than ${limits.expandedBytesMax} bytes`);
    }
    const output = this.#file?.output;
    if (output?.kind === "shared") output.writer.write(bytes);
    if (output?.kind === "own") {
      output.hash.update(bytes);
      writeFully(output.fd, bytes);
    }
  }

  fileEnd(): void {
    const file = this.#file;
    if (file === null) return;
    this.#file = null;
    if (file.output.kind === "own") {
      closeSync(file.output.fd);
      this.#ownBytes += file.byteLength;
      this.#files.push({
        path: file.path,
        byteLength: file.byteLength,
        sha256: file.output.hash.digest("hex"),
      });
      return;
    }
    const content = file.output.writer.finish();
    this.#contents.set(content.id, content);
    this.#files.push({ path: file.path, byteLength: file.byteLength, sha256: content.id });
  }

  finish(): UnpackedArchive {
    // A chain of links can leave the destination even if no single link does, so the file system resolves it. The
    // native `realpath` is needed, because the JavaScript version resolves ".." before it follows links.
    const root = realpathSync.native(this.#options.destination);
    for (const { path, linkTarget } of this.#locations) {
      if (linkTarget === null) continue;
      let real: string;
      try {
        real = realpathSync.native(`${root}/${path}`);
      } catch (error) {
        throw new ArchiveError("unsafe", `the link ${printablePath(path)} leads nowhere`, { cause: error });
      }
      if (real !== root && !real.startsWith(`${root}/`)) throw leavesRoot(path);
    }
    const fingerprint = createHash("sha256");
    for (const file of this.#files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
      fingerprint.update(`${file.sha256} ${file.path}\0`);
    }
    return {
      files: this.#files,
      places: this.#locations,
      expandedBytes: this.#expandedBytes,
      ownBytes: this.#ownBytes,
      contents: [...this.#contents.values()],
      fingerprint: fingerprint.digest("hex"),
    };
  }

  /** Closes open files after a failure. The caller removes the destination. */
  close(): void {
    const output = this.#file?.output;
    if (output?.kind === "own") closeSync(output.fd);
    if (output?.kind === "shared") output.writer.close();
    this.#file = null;
  }

  #makeParents(path: string): void {
    for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", end + 1)) {
      const parent = path.slice(0, end);
      const created = this.#generated.get(parent);
      if (created === undefined) this.#makeDirectory(parent);
      else if (created !== "directory") {
        throw new ArchiveError(
          "clash",
          `${printablePath(path)} lies under ${printablePath(parent)}, which is a ${created}`,
        );
      }
    }
  }

  #makeDirectory(path: string): void {
    const directory = join(this.#options.destination, path);
    mkdirSync(directory);
    chmodSync(directory, sharedDirectoryMode);
    this.#generated.set(path, "directory");
    this.#locations.push({ path, linkTarget: null });
  }

  #beginFile(path: string, { byteLength, executable }: { byteLength: number; executable: boolean }): void {
    const { destination, contentDirectory, sharedBytesMin, limits } = this.#options;
    // The header contains the size, so the limit is checked before any byte is written.
    if (this.#expandedBytes + byteLength > limits.expandedBytesMax) {
      throw new ArchiveError("limit", `the archive expands to more than ${limits.expandedBytesMax} bytes`);
    }
    const target = join(destination, path);
    this.#generated.set(path, "file");
    // Executables are not shared: the mode is a property of the inode, so it would change for other archives, too.
    if (contentDirectory !== null && byteLength >= sharedBytesMin && !executable) {
      const writer = new SharedFileWriter(contentDirectory, target, byteLength);
      this.#file = { path, byteLength, output: { kind: "shared", writer } };
      return;
    }
    const fd = openSync(target, "wx");
    this.#file = { path, byteLength, output: { kind: "own", fd, hash: createHash("sha256") } };
    fchmodSync(fd, executable ? 0o755 : sharedFileMode);
  }

  #symlink(path: string, target: string): void {
    const resolved = posix.normalize(posix.join(posix.dirname(path), target));
    if (
      target === "" ||
      target.includes("\0") ||
      target.startsWith("/") ||
      resolved === ".." ||
      resolved.startsWith("../")
    ) {
      throw leavesRoot(path);
    }
    symlinkSync(target, join(this.#options.destination, path));
    this.#generated.set(path, "symlink");
    this.#locations.push({ path, linkTarget: target });
  }

  #hardlink(path: string, target: string): void {
    const source = safePath(target, this.#options.limits);
    if (this.#generated.get(source) !== "file") {
      throw new ArchiveError("unsafe", `the link ${printablePath(path)} does not name an earlier file of the archive`);
    }
    linkSync(join(this.#options.destination, source), join(this.#options.destination, path));
    this.#generated.set(path, "file");
    const file = this.#files.find((candidate) => candidate.path === source);
    if (file !== undefined) this.#files.push({ ...file, path });
  }
}

/**
 * Normalizes a path: `./a//b/` becomes `a/b`, and the root becomes "". Throws if the path could leave the destination.
 */
function safePath(raw: string, limits: ArchiveLimits): string {
  // The SageMaker SDK writes "/" as the root of repacked archives.
  if (/^\/+$/.test(raw)) return "";
  if (raw.startsWith("/"))
    throw new ArchiveError("unsafe", `the archive holds an absolute path: ${printablePath(raw)}`);
  if (raw.includes("\0"))
    throw new ArchiveError("unsafe", `the archive holds a path with a NUL: ${printablePath(raw)}`);
  if (Buffer.byteLength(raw) > limits.pathBytesMax) {
    throw new ArchiveError("limit", `a path of the archive is longer than ${limits.pathBytesMax} bytes`);
  }
  const parts = raw.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes(".."))
    throw new ArchiveError("unsafe", `the archive holds a path with "..": ${printablePath(raw)}`);
  if (parts.length > limits.depthMax) {
    throw new ArchiveError("limit", `a path of the archive is deeper than ${limits.depthMax} directories`);
  }
  if (parts.some((part) => Buffer.byteLength(part) > 255)) {
    throw new ArchiveError("limit", "a name in the archive is longer than 255 bytes");
  }
  return parts.join("/");
}

function leavesRoot(path: string): ArchiveError {
  return new ArchiveError("unsafe", `the link ${printablePath(path)} leaves the archive`);
}

export function printablePath(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}...` : path);
}
