import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AwsError, KeyedLock, type Logger } from "@galatea/base";
import { toStoreError } from "./body-file.ts";
import { isQuarantined, quarantineFile } from "./damaged-file.ts";
import { syncFile, syncFolder } from "./durable-file.ts";
import { EntrySnapshot } from "./entry-snapshot.ts";
import { dataFileName, encodeEntry, entryFileName, keyHash, type ObjectEntry } from "./object-entry.ts";
import { ObjectIndex } from "./object-index.ts";
import { listShard, readBytes, readShard, type ListedShard } from "./object-shard.ts";
import type { BucketHead, DeleteCondition, ObjectHead, PutCondition } from "./object-store.ts";
import type { SmallFiles } from "./small-files.ts";
import { checkDeleteCondition, checkPutCondition } from "./write-condition.ts";

/** A folder of objects, in which this process has created files. */
interface Shard {
  readonly path: string;
  readonly created: Promise<void>;
  /**
   * Settles after the parent folder was synced. Writes wait for it, because a previous run may have created the folder
   * without syncing it.
   */
  readonly synced: Promise<void>;
}

/** A new object that is not visible yet. Its bytes are in a file of the bucket or, if they are short, in memory. */
export interface UncommittedObject {
  readonly head: ObjectHead;
  readonly crc32: number;
  readonly uploadId: string | null;
  readonly bytes:
    | { readonly at: "file"; readonly path: string }
    | { readonly at: "memory"; readonly chunks: readonly Buffer[] };
}

/** Dependencies that all buckets of a store share. The store disposes them. */
export interface BucketDependencies {
  readonly files: SmallFiles;
  readonly logger: Logger;
}

/**
 * The objects of one bucket. They are in `objects/`, in one folder for each value of the first two hex digits of the
 * key's hash. Each object has an entry file, `<hash>.<version>.json`. Short bytes follow the entry in this file. Longer
 * bytes are in `<hash>.<random>`, which is written and synced before the entry. A write never changes the previous
 * version, which is removed after the new version is synced. A small object therefore needs only one round of syncs. If
 * an interrupted write leaves several versions, the highest undamaged one is the object.
 */
export class FileSystemBucket {
  readonly head: BucketHead;
  readonly folder: string;
  readonly index = new ObjectIndex<ObjectEntry>();
  readonly #files: SmallFiles;
  readonly #snapshot: EntrySnapshot;
  readonly #locks = new KeyedLock();
  readonly #shards = new Map<string, Shard>();
  /** The version of the next entry; greater than that of every entry in this bucket. */
  #nextVersion = 1;
  #committing = 0;
  #deleted = false;

  constructor(head: BucketHead, folder: string, { files, logger }: BucketDependencies) {
    this.head = head;
    this.folder = folder;
    this.#files = files;
    this.#snapshot = new EntrySnapshot({ path: join(folder, "objects.snapshot"), logger, entries: this.index });
  }

  /**
   * Reads every entry that is not in the snapshot, and removes files that interrupted writes left. Damaged files are
   * quarantined and logged.
   */
  async load(logger: Logger): Promise<void> {
    const objects = join(this.folder, "objects");
    await mkdir(objects, { recursive: true });
    const shards = await listShards(objects, logger);
    const { known, versionMax } = await this.#snapshot.read((hash, version) => {
      const versions = shards.get(hash.slice(0, 2))?.keys.get(hash) ?? [];
      return versions.some((name) => name.version === version);
    });
    this.#nextVersion = 1 + versionMax;
    for (const { keys } of shards.values())
      for (const versions of keys.values())
        for (const { version } of versions) this.#nextVersion = Math.max(this.#nextVersion, version + 1);
    const entries: ObjectEntry[] = [];
    let readCount = 0;
    for (const shard of shards.values()) {
      const read = await readShard(shard, {
        logger,
        known: (hash) => known.get(hash),
        nextVersion: () => this.#nextVersion++,
      });
      for (const entry of read.entries) entries.push(entry);
      readCount += read.readCount;
    }
    this.index.load(entries);
    this.#snapshot.changed(readCount);
  }

  /** Returns an unused path for the bytes of a key's new version. The folder exists. */
  async newDataPath(key: string): Promise<string> {
    const hash = keyHash(key);
    const { path } = await this.#shard(hash);
    return join(path, `${hash}.${randomBytes(9).toString("base64url")}`);
  }

  /** Returns the folder for a hash; creates it if absent. */
  async #shard(hash: string): Promise<Shard> {
    if (this.#deleted) throw noSuchBucket();
    const name = hash.slice(0, 2);
    const shard = this.#shards.get(name) ?? this.#createShard(name);
    await shard.created;
    return shard;
  }

  #createShard(name: string): Shard {
    const objects = join(this.folder, "objects");
    const path = join(objects, name);
    const created = makeFolder(path);
    const synced = created.then(() => syncFolder(objects));
    // Waiting callers get the error. The next caller tries again.
    synced.catch(() => this.#shards.delete(name));
    const shard = { path, created, synced };
    this.#shards.set(name, shard);
    return shard;
  }

  /** Returns the path of the file with the object's bytes, which begin at `entry.offset`. */
  dataPath(entry: ObjectEntry): string {
    return join(this.folder, "objects", keyHash(entry.head.key).slice(0, 2), dataFileName(entry));
  }

  entry(key: string): ObjectEntry {
    const entry = this.index.get(key);
    if (entry === undefined)
      throw new AwsError("NoSuchKey", "The specified key does not exist.", { statusFallback: 404 });
    return entry;
  }

  /** Makes a new object durable and visible, and removes its previous version. Rejects if the condition is not met. */
  async commit(created: UncommittedObject, condition: PutCondition | undefined): Promise<void> {
    const { bytes } = created;
    if (bytes.at === "file") await syncFile(bytes.path).catch((cause: unknown) => Promise.reject(toStoreError(cause)));
    const { key } = created.head;
    await this.#exclusively(key, async () => {
      const before = this.index.get(key);
      checkPutCondition(before?.head, condition);
      const chunks = bytes.at === "memory" ? bytes.chunks : null;
      const data = bytes.at === "file" ? basename(bytes.path) : null;
      const { head, crc32, uploadId } = created;
      const after = await this.#write({ head, data, crc32, uploadId }, chunks ?? []);
      if (before !== undefined) await this.#remove(before, after);
    });
  }

  /** Writes the entry of a key's next version, followed by the bytes if they are short, and updates the index. */
  async #write(stored: Omit<ObjectEntry, "version" | "offset">, chunks: readonly Buffer[]): Promise<ObjectEntry> {
    const hash = keyHash(stored.head.key);
    const shard = await this.#shard(hash);
    const version = this.#nextVersion;
    this.#nextVersion += 1;
    const encoded = encodeEntry(stored);
    await this.#files.create(
      join(shard.path, entryFileName(hash, version)),
      [encoded, ...chunks],
      [() => shard.synced],
    );
    const entry = { ...stored, version, offset: stored.data === null ? encoded.byteLength : 0 };
    this.index.set(entry);
    this.#snapshot.changed();
    return entry;
  }

  /** Removes the files of version `before`, except a data file that version `after` uses. */
  async #remove(before: ObjectEntry, after: ObjectEntry | null): Promise<void> {
    const path = this.dataPath(before);
    await rm(join(path, "..", entryFileName(keyHash(before.head.key), before.version)), { force: true });
    if (before.data !== null && before.data !== after?.data) await rm(path, { force: true });
  }

  /** Changes headers of an object without changing its bytes; null removes a header. */
  async changeHeaders(key: string, changes: Readonly<Record<string, string | null>>): Promise<ObjectHead> {
    return await this.#exclusively(key, async () => {
      const before = this.entry(key);
      const changed = Object.entries({ ...before.head.headers, ...changes });
      const headers = Object.fromEntries(changed.filter((each): each is [string, string] => each[1] !== null));
      const chunks = before.data === null ? [await readBytes(this.dataPath(before), before)] : [];
      const after = await this.#write({ ...before, head: { ...before.head, headers } }, chunks);
      await this.#remove(before, after);
      return after.head;
    });
  }

  async delete(key: string, condition: DeleteCondition | undefined): Promise<void> {
    await this.#exclusively(key, async () => {
      const before = this.index.get(key);
      checkDeleteCondition(before?.head, condition);
      if (before === undefined) return;
      const path = join(this.dataPath(before), "..", entryFileName(keyHash(key), before.version));
      await rm(path, { force: true });
      this.index.delete(key);
      this.#snapshot.changed();
      await syncFolder(dirname(path));
      await this.#remove(before, null);
    });
  }

  /**
   * Prevents all later commits. The caller removes the folder. Throws BucketNotEmpty if objects exist or are being
   * written.
   */
  close(): void {
    if (this.index.size > 0 || this.#committing > 0) {
      throw new AwsError("BucketNotEmpty", "The bucket you tried to delete is not empty", { statusFallback: 409 });
    }
    this.#deleted = true;
  }

  /** Waits until all background writes to the bucket's folder have ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#snapshot[Symbol.asyncDispose]();
  }

  async #exclusively<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    if (this.#deleted) throw noSuchBucket();
    this.#committing += 1;
    try {
      return await this.#locks.run(key, task);
    } catch (cause) {
      throw toStoreError(cause);
    } finally {
      this.#committing -= 1;
    }
  }
}

/** Lists the folders of objects, by folder name. */
async function listShards(objects: string, logger: Logger): Promise<ReadonlyMap<string, ListedShard>> {
  const shards = new Map<string, ListedShard>();
  for (const shard of await readdir(objects, { withFileTypes: true })) {
    if (isQuarantined(shard.name)) continue;
    const folder = join(objects, shard.name);
    if (shard.isDirectory() && /^[0-9a-f]{2}$/.test(shard.name))
      shards.set(shard.name, await listShard(folder, logger));
    else await quarantineFile(folder, "an unknown file is among the objects", "", logger);
  }
  return shards;
}

async function makeFolder(path: string): Promise<void> {
  try {
    // Without `recursive`, because the folder of a bucket that was deleted meanwhile must not be created again.
    await mkdir(path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw toStoreError(cause);
  }
}

export function noSuchBucket(cause?: unknown): AwsError {
  return new AwsError("NoSuchBucket", "The specified bucket does not exist", { cause, statusFallback: 404 });
}
