import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** A complete copy of a database at one moment. */
export interface Snapshot {
  readonly path: string;
  readonly madeMs: number;
}

export interface SnapshotPlan {
  /** Path of the database. */
  readonly path: string;
  readonly folder: string;
  readonly daysKept: number;
  readonly nowMs: number;
  /** Free bytes on the folder's disk. */
  readonly freeBytes: number;
}

const dayMs = 86_400_000;
const suffix = ".db";
const partialSuffix = ".partial";

/** Returns the name of a snapshot. A snapshot of `galatea.db` is named `galatea-20261124T151000Z.db`, for example. */
function snapshotName(path: string, madeMs: number): string {
  const time = new Date(madeMs).toISOString().replace(/\.\d+|[-:]/g, "");
  return `${basename(path, suffix)}-${time}${suffix}`;
}

/** Returns the time in a snapshot's name; null for any other name. */
function timeOf(name: string, path: string): number | null {
  const found = /-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db$/.exec(name);
  if (found === null) return null;
  const [year, month, day, hour, minute, second] = found.slice(1).map(Number) as [number, ...number[]];
  const madeMs = Date.UTC(year, (month ?? 0) - 1, day, hour, minute, second);
  return snapshotName(path, madeMs) === name ? madeMs : null;
}

/** Lists the snapshots of a database, newest first; none if the folder does not exist. */
export function listSnapshots(path: string, folder: string): readonly Snapshot[] {
  const found = namesIn(folder).flatMap((name) => {
    const madeMs = timeOf(name, path);
    return madeMs === null ? [] : { path: join(folder, name), madeMs };
  });
  return found.toSorted((a, b) => b.madeMs - a.madeMs);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Makes a snapshot and removes old ones. Throws if the free space is below twice the size of the database. */
export function makeSnapshot({ path, folder, daysKept, nowMs, freeBytes }: SnapshotPlan): void {
  const neededBytes = 2 * statSync(path).size;
  if (freeBytes < neededBytes) {
    throw new Error(`'${folder}' has ${freeBytes} bytes free, and a snapshot needs ${neededBytes}`);
  }
  const started = `${basename(path, suffix)}-`;
  for (const name of namesIn(folder)) {
    // A crash may have left an unfinished copy and SQLite's journal of it.
    if (name.startsWith(started) && name.includes(partialSuffix)) rmSync(join(folder, name), { force: true });
  }
  copyDatabase(path, join(folder, snapshotName(path, nowMs)));
  const snapshots = listSnapshots(path, folder);
  const kept = new Set(keptSnapshots(snapshots, daysKept, nowMs));
  for (const each of snapshots) if (!kept.has(each)) rmSync(each.path, { force: true });
}

/**
 * Returns the newest snapshot of each of the last days that have one. Excludes snapshots with a time after `nowMs`,
 * which were made with a wrong clock.
 */
export function keptSnapshots(snapshots: readonly Snapshot[], daysKept: number, nowMs: number): readonly Snapshot[] {
  const newestOfDay = new Map<number, Snapshot>();
  for (const each of snapshots) {
    const day = Math.floor(each.madeMs / dayMs);
    if (each.madeMs <= nowMs && !newestOfDay.has(day)) newestOfDay.set(day, each);
  }
  return [...newestOfDay.values()].slice(0, daysKept);
}

/**
 * Copies the committed state to a file. The file appears only when it is complete and on disk. Other processes may use
 * the database meanwhile.
 */
export function copyDatabase(from: string, to: string): void {
  const partial = `${to}${partialSuffix}`;
  rmSync(partial, { force: true });
  try {
    {
      using database = new DatabaseSync(from, { readOnly: true });
      database.prepare("VACUUM INTO ?").run(partial);
    }
    flushFile(partial);
    renameSync(partial, to);
    flushFile(dirname(to));
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

/** Syncs a file, or a directory's list of files, to disk. */
export function flushFile(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
