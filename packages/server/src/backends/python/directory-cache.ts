import { randomUUID } from "node:crypto";
import { utimesSync } from "node:fs";
import { lstat, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { delay, InferenceError, makeDirectory, type Clock } from "@galatea/base";
import { lockDirectory, shareDirectory } from "@galatea/base/processes";

export interface DirectoryCacheOptions {
  /** The parent directory, which contains only the cached directories, each as `<name>/files`. */
  readonly directory: string;
  /** Limit in bytes of the total size on disk of the cached directories. Directories that are leased or being created do not count. */
  readonly bytesMax: number;
  readonly clock: Clock;
}

/** Fills the empty directory `files`. Returns the size in bytes; if it returns null, the cache measures the size. */
export type CreateFiles = (files: string) => Promise<number | null>;

/** A lease of a cached directory, which is not deleted until the lease is disposed or the process ends. */
export interface DirectoryLease extends Disposable {
  readonly directory: string;
}

interface LeasedDirectory {
  readonly lock: Disposable;
  users: number;
}

/**
 * A cache of directories that can be created again, such as Python environments. Several processes may share it. When the cache exceeds
 * `bytesMax`, directories without a lease are deleted, the least recently used first.
 */
export class DirectoryCache {
  readonly #options: DirectoryCacheOptions;
  readonly #bytesLease = new Map<string, LeasedDirectory>();

  constructor(options: DirectoryCacheOptions) {
    this.#options = options;
  }

  get directory(): string {
    return this.#options.directory;
  }

  /** Returns the path of a cached directory, which is valid during a lease. */
  filesOf(name: string): string {
    return join(this.#options.directory, name, "files");
  }

  /**
   * Leases a directory, and creates it first if necessary; concurrent callers wait for the creation. The remains of a failed creation are
   * replaced. Throws the error of `make`, and INVALID_ARG for a directory that exceeds the limit.
   */
  async hold(name: string, make: CreateFiles, signal: AbortSignal): Promise<DirectoryLease> {
    const root = join(this.#options.directory, name);
    for (let isNew = false; ;) {
      signal.throwIfAborted();
      const lease = this.#again(name) ?? (await this.#share(name, root));
      if (lease !== null) {
        if (isNew) await this.#bound();
        return lease;
      }
      const own = (await isMade(root)) ? null : await taken(root, lockDirectory);
      if (own === null) {
        // Another caller is creating or deleting the directory.
        await delay(this.#options.clock, waitMs, signal);
        continue;
      }
      using _lock = own;
      if (!(await isMade(root))) await this.#make(root, make);
      isNew = true;
    }
  }

  #again(name: string): DirectoryLease | null {
    const lease = this.#bytesLease.get(name);
    return lease === undefined ? null : this.#handle(name, lease);
  }

  async #share(name: string, root: string): Promise<DirectoryLease | null> {
    const lock = (await isMade(root)) ? await taken(root, shareDirectory) : null;
    if (lock === null) return null;
    const isStill = await isMade(root);
    // Another caller in this process may have leased the directory in the meantime.
    const known = this.#again(name);
    if (isStill && known === null) {
      const held = { lock, users: 0 };
      this.#bytesLease.set(name, held);
      return this.#handle(name, held);
    }
    lock[Symbol.dispose]();
    return known;
  }

  #handle(name: string, lease: LeasedDirectory): DirectoryLease {
    const root = join(this.#options.directory, name);
    lease.users++;
    this.#touch(root);
    let isOver = false;
    return {
      directory: join(root, "files"),
      [Symbol.dispose]: () => {
        if (isOver) return;
        isOver = true;
        if (--lease.users > 0) return;
        this.#bytesLease.delete(name);
        this.#touch(root);
        lease.lock[Symbol.dispose]();
      },
    };
  }

  #touch(root: string): void {
    const now = new Date(this.#options.clock.epochMs());
    try {
      utimesSync(join(root, stampName), now, now);
    } catch {
      // Ignored: the time of the last use only affects the order of deletion.
    }
  }

  async #make(root: string, make: CreateFiles): Promise<void> {
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

  /** Deletes incomplete directories, then unleased ones until the total size is within the limit. */
  async #bound(): Promise<void> {
    const { directory, bytesMax } = this.#options;
    const entries: CachedDirectory[] = [];
    const found = await readdir(directory, { withFileTypes: true });
    for (const { name } of found.filter((entry) => entry.isDirectory())) {
      if (name.startsWith(goneMark)) await rm(join(directory, name), { recursive: true, force: true });
      else entries.push({ name, ...(await readStamp(join(directory, name))) });
    }
    let excess = entries.reduce((sum, { byteCount }) => sum + byteCount, 0) - bytesMax;
    for (const { name, byteCount } of evictionOrder(entries)) {
      if (excess <= 0 && byteCount > 0) break;
      const root = join(directory, name);
      const own = await taken(root, lockDirectory, { makes: false });
      if (own === null) continue;
      using _lock = own;
      await this.#delete(root);
      excess -= byteCount;
    }
  }

  /** Deletes a directory. The caller must hold the directory's lock. */
  async #delete(root: string): Promise<void> {
    const removed = join(this.#options.directory, `${goneMark}${randomUUID()}`);
    await rename(root, removed);
    // The removal is retried, because a failed creation may still be writing to the directory.
    await rm(removed, { recursive: true, force: true, maxRetries: 9, retryDelay: 50 });
  }
}

const stampName = "bytes";
const goneMark = ".gone-";
const waitMs = 50;

export interface CachedDirectory {
  readonly name: string;
  /** Size in bytes; 0 for an incomplete directory. */
  readonly byteCount: number;
  readonly usedMs: number;
}

/** Returns the directories in the order of their deletion: incomplete ones first, then the least recently used ones. */
export function evictionOrder(entries: readonly CachedDirectory[]): readonly CachedDirectory[] {
  return entries.toSorted((a, b) => Number(a.byteCount > 0) - Number(b.byteCount > 0) || a.usedMs - b.usedMs);
}

/** Locks an existing directory. Returns null if another process has locked it, or if it was deleted and created again in the meantime. */
async function taken(
  root: string,
  lock: (directory: string) => Disposable | null,
  { makes } = { makes: true },
): Promise<Disposable | null> {
  if (makes) {
    await makeDirectory(root);
    // Only the server may open the lock file. A model that could open the file could also lock it.
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

async function readStamp(root: string): Promise<Omit<CachedDirectory, "name">> {
  const path = join(root, stampName);
  const text = await readFile(path, "utf8").catch(() => "0");
  const found = await stat(path).catch(() => null);
  return { byteCount: Number(text) || 0, usedMs: found?.mtimeMs ?? 0 };
}

/** Returns the disk space in bytes of all files in a directory tree. */
async function bytesBelow(directory: string): Promise<number> {
  let sum = 0;
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    sum += (await lstat(path)).blocks * 512;
    if (entry.isDirectory()) sum += await bytesBelow(path);
  }
  return sum;
}
