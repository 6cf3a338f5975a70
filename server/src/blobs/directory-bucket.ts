import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readFile, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { AwsError, type Logger } from "../base/index.ts";
import { diskError } from "./body-file.ts";
import { KeyedLock } from "./keyed-lock.ts";
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
  #committing = 0;
  #deleted = false;

  constructor(head: BucketHead, folder: string) {
    this.head = head;
    this.folder = folder;
  }

  /** Reads every entry and removes what interrupted writes have left. */
  async load(logger: Logger): Promise<void> {
    const objects = join(this.folder, "objects");
    const entries: ObjectEntry[] = [];
    for (const shard of await readdir(objects)) {
      const folder = join(objects, shard);
      const names = new Set(await readdir(folder));
      const read = await Promise.all(
        [...names].filter((name) => name.endsWith(".json")).map((name) => readEntry(join(folder, name), names, logger)),
      );
      const kept = new Set<string>();
      for (const entry of read) {
        if (entry === null) continue;
        entries.push(entry);
        kept.add(entry.data);
      }
      const leftovers = [...names].filter((name) => !/\.(?:json|damaged)$/.test(name) && !kept.has(name));
      await Promise.all(leftovers.map((name) => rm(join(folder, name), { force: true })));
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
      await syncFolder(objects);
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

  /** Makes a written and synced data file the object, durably; the version before it is removed. */
  async commit(entry: ObjectEntry, condition: PutCondition | undefined): Promise<void> {
    const { key } = entry.head;
    await this.#exclusively(key, async () => {
      const before = this.index.get(key);
      checkPutCondition(before?.head, condition);
      const path = this.dataPath(entry);
      const target = join(path, "..", `${hashOf(key)}.json`);
      await writeFileDurably(`${path}.tmp`, target, JSON.stringify(entry));
      this.index.set(entry);
      if (before !== undefined) await rm(this.dataPath(before), { force: true });
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

  async #exclusively(key: string, task: () => Promise<void>): Promise<void> {
    if (this.#deleted) throw noSuchBucket();
    this.#committing += 1;
    try {
      await this.#locks.run(key, task);
    } catch (cause) {
      throw diskError(cause);
    } finally {
      this.#committing -= 1;
    }
  }
}

async function readEntry(path: string, names: ReadonlySet<string>, logger: Logger): Promise<ObjectEntry | null> {
  let reason = "its data file is missing";
  try {
    const entry = JSON.parse(await readFile(path, "utf8")) as ObjectEntry;
    if (names.has(entry.data)) return entry;
  } catch (error) {
    reason = String(error);
  }
  // Only a disk that lost synced bytes gets here; the file stays for a person to look at.
  logger.error("an object's entry is damaged and set aside", { path, reason });
  await rename(path, `${path}.damaged`);
  return null;
}

export function noSuchBucket(cause?: unknown): AwsError {
  return new AwsError("NoSuchBucket", "The specified bucket does not exist", { cause, statusFallback: 404 });
}

const hashOf = (key: string) => createHash("sha256").update(key).digest("hex");

/** Written aside, synced, renamed, and the rename synced: after this returns the file is there whatever happens. */
export async function writeFileDurably(aside: string, target: string, text: string): Promise<void> {
  const file = await open(aside, "w");
  try {
    await file.writeFile(text);
    await file.sync();
  } catch (error) {
    await file.close();
    await rm(aside, { force: true });
    throw error;
  }
  await file.close();
  await rename(aside, target);
  await syncFolder(join(target, ".."));
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
