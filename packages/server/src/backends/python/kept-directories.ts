import { randomUUID } from "node:crypto";
import { utimesSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { delay, InferenceError, makeDirectory, type Clock } from "@galatea/base";
import { lockDirectory, shareDirectory } from "@galatea/base/processes";

export interface KeptOptions {
  /** The parent directory, which contains each as `<name>/files`, and no other directories. */
  readonly directory: string;
  /** Limit of their total size on disk, without those that are being created or used. */
  readonly bytesMax: number;
  readonly clock: Clock;
}

/** Fills the empty directory `files`. Returns its bytes, or null to have them counted. */
export type MakeFiles = (files: string) => Promise<number | null>;

/** A lease of a directory: it does not change until this is disposed, or the process ends. */
export interface DirectoryLease extends Disposable {
  readonly directory: string;
}

interface Held {
  readonly lock: Disposable;
  users: number;
}

/**
 * A cache of directories that can be created again: Python environments, sets of packages. Any number of processes share them. Over
 * `bytesMax` unleased directories are deleted, the least recently used first.
 */
export class KeptDirectories {
  readonly #options: KeptOptions;
  readonly #held = new Map<string, Held>();

  constructor(options: KeptOptions) {
    this.#options = options;
  }

  get directory(): string {
    return this.#options.directory;
  }

  /** Returns the path of the files of `name`, valid during its lease. */
  filesOf(name: string): string {
    return join(this.#options.directory, name, "files");
  }

  /**
   * Leases a directory. One caller creates it if necessary; others wait. The remains of a failed or killed creation are replaced. Throws
   * the error of `make`, and INVALID_ARG for a directory over the total limit.
   */
  async hold(name: string, make: MakeFiles, signal: AbortSignal): Promise<DirectoryLease> {
    const root = join(this.#options.directory, name);
    for (let isNew = false; ;) {
      signal.throwIfAborted();
      const held = this.#again(name) ?? (await this.#share(name, root));
      if (held !== null) {
        if (isNew) await this.#bound();
        return held;
      }
      const own = (await isMade(root)) ? null : await taken(root, lockDirectory);
      if (own === null) {
        // Another caller creates or deletes it now.
        await delay(this.#options.clock, waitMs, signal);
        continue;
      }
      using _turn = own;
      if (!(await isMade(root))) await this.#make(root, make);
      isNew = true;
    }
  }

  #again(name: string): DirectoryLease | null {
    const held = this.#held.get(name);
    return held === undefined ? null : this.#handle(name, held);
  }

  async #share(name: string, root: string): Promise<DirectoryLease | null> {
    const lock = (await isMade(root)) ? await taken(root, shareDirectory) : null;
    if (lock === null) return null;
    const isStill = await isMade(root);
    // Another caller of this process may have been faster.
    const known = this.#again(name);
    if (isStill && known === null) {
      const held = { lock, users: 0 };
      this.#held.set(name, held);
      return this.#handle(name, held);
    }
    lock[Symbol.dispose]();
    return known;
  }

  #handle(name: string, held: Held): DirectoryLease {
    const root = join(this.#options.directory, name);
    held.users++;
    this.#touch(root);
    let isOver = false;
    return {
      directory: join(root, "files"),
      [Symbol.dispose]: () => {
        if (isOver) return;
        isOver = true;
        if (--held.users > 0) return;
        this.#held.delete(name);
        this.#touch(root);
        held.lock[Symbol.dispose]();
      },
    };
  }

  #touch(root: string): void {
    const now = new Date(this.#options.clock.epochMs());
    try {
      utimesSync(join(root, stampName), now, now);
    } catch {
      // An unknown time of the last use is not a failure.
    }
  }

  async #make(root: string, make: MakeFiles): Promise<void> {
    const files = join(root, "files");
    try {
      for (const entry of await readdir(root))
        if (!entry.startsWith("lock")) await rm(join(root, entry), { recursive: true, force: true });
      await mkdir(files);
      const byteCount = (await make(files)) ?? (await bytesBelow(files));
      if (byteCount > this.#options.bytesMax)
        throw new InferenceError(
          "INVALID_ARG",
          `it takes ${byteCount} bytes, more than the ${this.#options.bytesMax} of --python-environments-bytes`,
        );
      await writeFile(join(root, `${stampName}.part`), String(byteCount));
      await rename(join(root, `${stampName}.part`), join(root, stampName));
    } catch (error) {
      await this.#delete(root);
      throw error;
    }
  }

  /** Deletes unleased directories until the rest is within the limit, and incomplete ones. */
  async #bound(): Promise<void> {
    const { directory, bytesMax } = this.#options;
    const entries: KeptEntry[] = [];
    const found = await readdir(directory, { withFileTypes: true });
    for (const { name } of found.filter((entry) => entry.isDirectory())) {
      if (name.startsWith(goneMark)) await rm(join(directory, name), { recursive: true, force: true });
      else entries.push({ name, ...(await readStamp(join(directory, name))) });
    }
    let excess = entries.reduce((sum, { byteCount }) => sum + byteCount, 0) - bytesMax;
    for (const { name, byteCount } of leastRecentFirst(entries)) {
      if (excess <= 0 && byteCount > 0) break;
      const root = join(directory, name);
      const own = await taken(root, lockDirectory, { makes: false });
      if (own === null) continue;
      using _turn = own;
      await this.#delete(root);
      excess -= byteCount;
    }
  }

  /** Deletes a directory and its lock, which the caller must have. */
  async #delete(root: string): Promise<void> {
    const gone = join(this.#options.directory, `${goneMark}${randomUUID()}`);
    await rename(root, gone);
    // A failed creation may still be writing, which the retries allow for.
    await rm(gone, { recursive: true, force: true, maxRetries: 9, retryDelay: 50 });
  }
}

const stampName = "bytes";
const goneMark = ".gone-";
const waitMs = 50;

export interface KeptEntry {
  readonly name: string;
  /** 0 for an incomplete directory. */
  readonly byteCount: number;
  readonly usedMs: number;
}

/** Returns the order of deletion: incomplete ones first, then the least recently used. */
export function leastRecentFirst(entries: readonly KeptEntry[]): readonly KeptEntry[] {
  return entries.toSorted((a, b) => Number(a.byteCount > 0) - Number(b.byteCount > 0) || a.usedMs - b.usedMs);
}

/**
 * Locks an existing directory, and checks that it was not deleted and created again meanwhile; returns null when it cannot be locked now.
 */
async function taken(
  root: string,
  lock: (directory: string) => Disposable | null,
  { makes } = { makes: true },
): Promise<Disposable | null> {
  if (makes) {
    await makeDirectory(root);
    // Models may read files beside it, and a process that can open it can lock it.
    await writeFile(join(root, "lock"), "", { flag: "a", mode: 0o600 });
  }
  const before = await inodeOf(root);
  if (before === null) return null;
  let own: Disposable | null;
  try {
    own = lock(root);
  } catch (error) {
    if ((await inodeOf(root)) === null) return null;
    throw error;
  }
  if (own === null || (await inodeOf(root)) === before) return own;
  own[Symbol.dispose]();
  return null;
}

async function inodeOf(path: string): Promise<number | null> {
  return (await stat(path).catch(() => null))?.ino ?? null;
}

async function isMade(root: string): Promise<boolean> {
  return (await inodeOf(join(root, stampName))) !== null;
}

async function readStamp(root: string): Promise<Omit<KeptEntry, "name">> {
  const path = join(root, stampName);
  const text = await readFile(path, "utf8").catch(() => "0");
  const found = await stat(path).catch(() => null);
  return { byteCount: Number(text) || 0, usedMs: found?.mtimeMs ?? 0 };
}

/** Returns the disk space of the files below a directory. */
async function bytesBelow(directory: string): Promise<number> {
  let sum = 0;
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    sum += (await lstat(path)).blocks * 512;
    if (entry.isDirectory()) sum += await bytesBelow(path);
  }
  return sum;
}
