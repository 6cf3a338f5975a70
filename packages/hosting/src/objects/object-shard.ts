import { open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "@galatea/base";
import { isQuarantined, renameToQuarantine, quarantineFile } from "./damaged-file.ts";
import { createDurably } from "./durable-file.ts";
import {
  encodeEntry,
  entryFileName,
  keyHash,
  parseEntryName,
  readEntryFile,
  readExactly,
  type EntryName,
  type ObjectEntry,
} from "./object-entry.ts";

/** Maximum number of concurrent file reads in a folder. */
const concurrentReadsMax = 32;

/** A folder of objects and the names of the files in it. */
export interface ListedShard {
  readonly folder: string;
  readonly names: ReadonlySet<string>;
  /** Entry files, by the hash of the key. */
  readonly keys: ReadonlyMap<string, readonly EntryName[]>;
}

/** Lists a folder, and quarantines files that the store did not create. */
export async function listShard(folder: string, logger: Logger): Promise<ListedShard> {
  const found = (await readdir(folder, { withFileTypes: true })).filter(({ name }) => !isQuarantined(name));
  const names = new Set<string>();
  for (const each of found) {
    if (each.isFile() && isOurs(each.name)) names.add(each.name);
    else await quarantineFile(join(folder, each.name), "an unknown file is among the objects", "", logger);
  }
  const keys = Map.groupBy(
    [...names].flatMap((name) => parseEntryName(name) ?? []),
    ({ hash }) => hash,
  );
  return { folder, names, keys };
}

export interface ReadShardOptions {
  readonly logger: Logger;
  /** Returns the entry of a key, in any version, if it is known without reading the file. */
  readonly known: (hash: string) => ObjectEntry | undefined;
  /** Returns a version that was never used in the bucket. */
  readonly nextVersion: () => number;
}

export interface ReadShard {
  readonly entries: readonly ObjectEntry[];
  /** Number of entries that had to be read, because they were unknown or differed from the files. */
  readonly readCount: number;
}

/**
 * Reads the unknown entries of one folder and removes files that interrupted writes left: data files that no entry
 * refers to, and all versions of a key except the highest undamaged one. Damaged files are quarantined and logged.
 */
export async function readShard(shard: ListedShard, options: ReadShardOptions): Promise<ReadShard> {
  const { folder, names, keys } = shard;
  const entries: ObjectEntry[] = [];
  const unknown: (readonly EntryName[])[] = [];
  for (const [hash, versions] of keys) {
    const known = options.known(hash);
    const isAsKnown =
      versions.length === 1 &&
      known?.version === versions[0]?.version &&
      (known?.data === null || names.has(known?.data ?? ""));
    if (known !== undefined && isAsKnown) entries.push(known);
    else unknown.push(versions);
  }
  const knownCount = entries.length;
  // Hashes of keys with a damaged entry. Their data files are kept, because nothing else is left of these objects.
  const damaged = new Set<string>();
  const waiting = unknown.values();
  const readNext = async () => {
    for (const versions of waiting) {
      const entry = await readNewest({ ...options, folder, names, versions, damaged });
      if (entry !== null) entries.push(entry);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrentReadsMax, unknown.length) }, readNext));
  const kept = new Set(entries.flatMap((entry) => entry.data ?? []));
  for (const name of names) {
    if (kept.has(name) || parseEntryName(name) !== null) continue;
    const path = join(folder, name);
    if (!damaged.has(name.slice(0, 64)) || name.endsWith(".tmp")) await rm(path, { force: true });
    else await renameToQuarantine(path);
  }
  return { entries, readCount: entries.length - knownCount };
}

/** Returns true if a name belongs to an entry, to an object's bytes, or to a temporary file of either. */
const isOurs = (name: string) =>
  parseEntryName(name) !== null || /^[0-9a-f]{64}\.(?:[\w-]{12}|.{1,20}\.tmp)$/.test(name);

interface KeyVersions {
  readonly folder: string;
  readonly names: ReadonlySet<string>;
  readonly versions: readonly EntryName[];
  readonly damaged: Set<string>;
  readonly logger: Logger;
  readonly nextVersion: () => number;
}

/**
 * Returns the highest undamaged version of a key; null if there is none. An interrupted write leaves several versions.
 * After a power failure, the newest name may exist without its bytes, so it is checked before older versions are
 * removed.
 */
async function readNewest(key: KeyVersions): Promise<ObjectEntry | null> {
  const { folder, damaged, versions } = key;
  const [newest, ...older] = versions.toSorted((a, b) => b.version - a.version);
  if (newest === undefined) return null;
  const entry = await readVersion(key, newest);
  if (entry === null) {
    damaged.add(newest.hash);
    return readNewest({ ...key, versions: older });
  }
  for (const { hash, version } of older) await rm(join(folder, entryFileName(hash, version)), { force: true });
  return entry;
}

/**
 * Reads one version of a key. Returns null for a damaged entry, including one whose data file is missing, which happens
 * only if a disk lost synced data.
 */
async function readVersion(
  { folder, names, versions, logger, nextVersion }: KeyVersions,
  name: EntryName,
): Promise<ObjectEntry | null> {
  const path = join(folder, entryFileName(name.hash, name.version));
  let reason = "its data file is missing";
  try {
    const { entry, isRepaired } = await readEntryFile(path, name, { checksBytes: versions.length > 1 });
    if (entry.data === null || names.has(entry.data))
      return isRepaired ? await rewritten(folder, entry, nextVersion(), logger) : entry;
  } catch (error) {
    reason = String(error);
  }
  await quarantineFile(path, "an object's entry is damaged", reason, logger);
  return null;
}

/**
 * Writes a repaired entry as a new version of its key, with the same bytes, and removes the file with the flipped bit.
 */
async function rewritten(folder: string, entry: ObjectEntry, version: number, logger: Logger): Promise<ObjectEntry> {
  const hash = keyHash(entry.head.key);
  const path = join(folder, entryFileName(hash, entry.version));
  logger.error("an object's entry had a flipped bit and is repaired", { path, key: entry.head.key });
  const chunks = [encodeEntry(entry), ...(entry.data === null ? [await readBytes(path, entry)] : [])];
  await createDurably(join(folder, entryFileName(hash, version)), chunks);
  await rm(path, { force: true });
  return { ...entry, version, offset: entry.data === null ? (chunks[0]?.byteLength ?? 0) : 0 };
}

/** Returns the bytes that follow an entry in its file. */
export async function readBytes(path: string, { head, offset }: ObjectEntry): Promise<Buffer> {
  await using file = await open(path, "r");
  return await readExactly(file, offset, head.byteLength);
}
