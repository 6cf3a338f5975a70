import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AwsError, KeyedLock, type Logger } from "../base/index.ts";
import { diskError } from "./body-file.ts";
import { isAside, moveAside, readSealed, sealedText, setAside } from "./damaged-file.ts";
import { ObjectIndex } from "./object-index.ts";
import type { BucketHead, DeleteCondition, ObjectHead, PutCondition } from "./object-store.ts";
import { checkDeleteCondition, checkPutCondition } from "./write-condition.ts";

/** What is known of an object: written as one JSON file whose rename makes the object visible. */
export interface ObjectEntry {
  readonly head: ObjectHead;
  /** The file beside it that holds the bytes. */
  readonly data: string;
  /** The multipart upload that made it, so that completing twice answers the same. */
  readonly uploadId: string | null;
}

/** Objects up to this are synced together with their entries. */
const smallBytesMax = 2 ** 20;

/**
 * One bucket's objects below `objects/`, two hex digits of the key's hash to a folder. A key's name is the hash of its bytes, so
 * slashes, length, case and Unicode forms mean nothing to the file system. Per object: `<hash>.json`, the entry, and
 * `<hash>.<version>`, the bytes, written and synced before the entry that names them. A data file that no entry names is a
 * leftover, removed at opening.
 */
export class DirectoryBucket {
  readonly head: BucketHead;
  readonly folder: string;
  readonly index = new ObjectIndex<ObjectEntry>();
  readonly #locks = new KeyedLock();
  /** Folders that were made lately, of which none is older than its last commit. */
  readonly #newShards = new Map<string, Promise<void>>();
  #committing = 0;
  #deleted = false;

  constructor(head: BucketHead, folder: string) {
    this.head = head;
    this.folder = folder;
  }

  /** Reads every entry and removes what interrupted writes have left. What is damaged is set aside and told. */
  async load(logger: Logger): Promise<void> {
    const objects = join(this.folder, "objects");
    await mkdir(objects, { recursive: true });
    const entries: ObjectEntry[] = [];
    for (const shard of await readdir(objects, { withFileTypes: true })) {
      if (isAside(shard.name)) continue;
      const folder = join(objects, shard.name);
      if (shard.isDirectory() && /^[0-9a-f]{2}$/.test(shard.name)) entries.push(...(await readShard(folder, logger)));
      else await setAside(folder, "something lies among the objects that was put there by nobody", "", logger);
    }
    this.index.load(entries);
  }

  /** Where a new version of a key is to be written: a fresh name in an existing folder. */
  async newDataPath(key: string): Promise<string> {
    const hash = hashOf(key);
    const objects = join(this.folder, "objects");
    const shard = join(objects, hash.slice(0, 2));
    if (this.#deleted) throw noSuchBucket();
    try {
      // Never with its parents: those of a bucket that is deleted meanwhile must not come back.
      await mkdir(shard);
      // Awaited before an entry is committed there: the body is written meanwhile.
      const synced = syncFolder(objects);
      synced.catch(() => undefined);
      this.#newShards.set(shard, synced);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw diskError(cause);
    }
    return join(shard, `${hash}.${randomBytes(9).toString("base64url")}`);
  }

  dataPath(entry: ObjectEntry): string {
    return join(this.folder, "objects", hashOf(entry.head.key).slice(0, 2), entry.data);
  }

  entry(key: string): ObjectEntry {
    const entry = this.index.get(key);
    if (entry === undefined)
      throw new AwsError("NoSuchKey", "The specified key does not exist.", { statusFallback: 404 });
    return entry;
  }

  /** Makes a written data file the object, durably, the file too; the version before it is removed. */
  async commit(entry: ObjectEntry, condition: PutCondition | undefined): Promise<void> {
    const shard = dirname(this.dataPath(entry));
    // The syncs of a small object are made at once: the disk takes them as one.
    const isSmall = entry.head.byteLength <= smallBytesMax;
    if (!isSmall) await syncFile(this.dataPath(entry)).catch((cause: unknown) => Promise.reject(diskError(cause)));
    const { key } = entry.head;
    await this.#exclusively(key, async () => {
      const before = this.index.get(key);
      checkPutCondition(before?.head, condition);
      const path = this.dataPath(entry);
      const target = join(path, "..", `${hashOf(key)}.json`);
      const others = [this.#newShards.get(shard), isSmall ? syncFile(path) : undefined];
      await writeFileDurably(`${path}.tmp`, target, sealedText(entry), others);
      this.#newShards.delete(shard);
      this.index.set(entry);
      if (before !== undefined) await rm(this.dataPath(before), { force: true });
    });
  }

  /** The entry is written anew, for the same bytes. */
  async changeHeaders(key: string, changes: Readonly<Record<string, string | null>>): Promise<ObjectHead> {
    return await this.#exclusively(key, async () => {
      const before = this.entry(key);
      const changed = Object.entries({ ...before.head.headers, ...changes });
      const headers = Object.fromEntries(changed.filter((each): each is [string, string] => each[1] !== null));
      const entry = { ...before, head: { ...before.head, headers } };
      const path = this.dataPath(before);
      await writeFileDurably(`${path}.tmp`, join(dirname(path), `${hashOf(key)}.json`), sealedText(entry));
      this.index.set(entry);
      return entry.head;
    });
  }

  async delete(key: string, condition: DeleteCondition | undefined): Promise<void> {
    await this.#exclusively(key, async () => {
      const before = this.index.get(key);
      checkDeleteCondition(before?.head, condition);
      if (before === undefined) return;
      const path = this.dataPath(before);
      await rm(join(path, "..", `${hashOf(key)}.json`), { force: true });
      await syncFolder(join(path, ".."));
      this.index.delete(key);
      await rm(path, { force: true });
    });
  }

  /** After this nothing is committed any more; the caller removes the folder. */
  close(): void {
    if (this.index.size > 0 || this.#committing > 0) {
      throw new AwsError("BucketNotEmpty", "The bucket you tried to delete is not empty", { statusFallback: 409 });
    }
    this.#deleted = true;
  }

  async #exclusively<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    if (this.#deleted) throw noSuchBucket();
    this.#committing += 1;
    try {
      return await this.#locks.run(key, task);
    } catch (cause) {
      throw diskError(cause);
    } finally {
      this.#committing -= 1;
    }
  }
}

async function readShard(folder: string, logger: Logger): Promise<readonly ObjectEntry[]> {
  const found = (await readdir(folder, { withFileTypes: true })).filter(({ name }) => !isAside(name));
  const strange = found.filter((each) => !each.isFile() || !/^[0-9a-f]{64}\./.test(each.name));
  for (const { name } of strange) {
    await setAside(join(folder, name), "something lies among the objects that was put there by nobody", "", logger);
  }
  const names = new Set(found.filter((each) => !strange.includes(each)).map(({ name }) => name));
  const described = [...names].filter((name) => name.endsWith(".json"));
  const read = await Promise.all(described.map((name) => readEntry(join(folder, name), names, logger)));
  const kept = new Set(read.flatMap((entry) => (entry === null ? [] : [entry.data])));
  // Its bytes may be all that is left of an object whose entry is damaged.
  const damaged = new Set(described.filter((_, index) => read[index] === null).map((name) => name.slice(0, 64)));
  for (const name of names) {
    if (name.endsWith(".json") || kept.has(name)) continue;
    const path = join(folder, name);
    if (!damaged.has(name.slice(0, 64)) || name.endsWith(".tmp")) await rm(path, { force: true });
    else await moveAside(path);
  }
  return read.filter((entry) => entry !== null);
}

/** Null where the entry is damaged. One whose bytes are missing is, too: only a disk that lost synced bytes leads there. */
async function readEntry(path: string, names: ReadonlySet<string>, logger: Logger): Promise<ObjectEntry | null> {
  let reason = "its data file is missing";
  try {
    const { content, isRepaired } = await readSealed<ObjectEntry>(path);
    if (`${hashOf(content.head.key)}.json` !== basename(path)) reason = "it is another key's";
    else if (names.has(content.data)) {
      if (isRepaired) {
        logger.error("an object's entry had a flipped bit and is repaired", { path, key: content.head.key });
        await writeFileDurably(`${path}.tmp`, path, sealedText(content));
      }
      return content;
    }
  } catch (error) {
    reason = String(error);
  }
  await setAside(path, "an object's entry is damaged", reason, logger);
  return null;
}

export function noSuchBucket(cause?: unknown): AwsError {
  return new AwsError("NoSuchBucket", "The specified bucket does not exist", { cause, statusFallback: 404 });
}

const hashOf = (key: string) => createHash("sha256").update(key).digest("hex");

/**
 * Written aside, synced, renamed, and the rename synced: after this returns the file is there whatever happens. Whatever the file
 * speaks of is awaited before it gets its name.
 */
export async function writeFileDurably(
  aside: string,
  target: string,
  text: string,
  others: readonly (Promise<void> | undefined)[] = [],
): Promise<void> {
  try {
    const done = await Promise.allSettled([writeSynced(aside, text), ...others]);
    for (const each of done) if (each.status === "rejected") throw each.reason;
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
  await rename(aside, target);
  await syncFolder(join(target, ".."));
}

async function writeSynced(path: string, text: string): Promise<void> {
  await using file = await open(path, "w");
  await file.writeFile(text);
  await file.sync();
}

async function syncFile(path: string): Promise<void> {
  await using file = await open(path, "r");
  await file.sync();
}

export async function syncFolder(path: string): Promise<void> {
  await syncFile(path);
}
