import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** A whole copy of a database, of one moment. */
export interface Snapshot {
  readonly path: string;
  readonly madeMs: number;
}

export interface SnapshotPlan {
  /** The database. */
  readonly path: string;
  readonly folder: string;
  readonly daysKept: number;
  readonly nowMs: number;
  /** Free space of the folder's disk. */
  readonly freeBytes: number;
}

const dayMs = 86_400_000;
const suffix = ".db";
const partialSuffix = ".partial";

/** `galatea.db` has the snapshots `galatea-20261124T151000Z.db`. */
function snapshotName(path: string, madeMs: number): string {
  const time = new Date(madeMs).toISOString().replace(/\.\d+|[-:]/g, "");
  return `${basename(path, suffix)}-${time}${suffix}`;
}

/** Returns null for a name that `snapshotName` does not give for this database. */
function timeOf(name: string, path: string): number | null {
  const found = /-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.db$/.exec(name);
  if (found === null) return null;
  const [year, month, day, hour, minute, second] = found.slice(1).map(Number) as [number, ...number[]];
  const madeMs = Date.UTC(year, (month ?? 0) - 1, day, hour, minute, second);
  return snapshotName(path, madeMs) === name ? madeMs : null;
}

/** Lists the snapshots of a database, newest first; none where the folder does not exist. */
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

/** Makes a snapshot and removes those that are not kept. Throws where the copy would leave less free space than the database takes. */
export function makeSnapshot({ path, folder, daysKept, nowMs, freeBytes }: SnapshotPlan): void {
  const neededBytes = 2 * statSync(path).size;
  if (freeBytes < neededBytes) {
    throw new Error(`'${folder}' has ${freeBytes} bytes free, and a snapshot needs ${neededBytes}`);
  }
  const started = `${basename(path, suffix)}-`;
  for (const name of namesIn(folder)) {
    // A process that was killed leaves an unfinished copy, and SQLite's journal of it.
    if (name.startsWith(started) && name.includes(partialSuffix)) rmSync(join(folder, name), { force: true });
  }
  copyDatabase(path, join(folder, snapshotName(path, nowMs)));
  const snapshots = listSnapshots(path, folder);
  const kept = new Set(keptSnapshots(snapshots, daysKept, nowMs));
  for (const each of snapshots) if (!kept.has(each)) rmSync(each.path, { force: true });
}

/** Chooses the newest snapshot of each of the last days that have one. Snapshots from after `nowMs`, made by a clock that was wrong, are not kept. */
export function keptSnapshots(snapshots: readonly Snapshot[], daysKept: number, nowMs: number): readonly Snapshot[] {
  const newestOfDay = new Map<number, Snapshot>();
  for (const each of snapshots) {
    const day = Math.floor(each.madeMs / dayMs);
    if (each.madeMs <= nowMs && !newestOfDay.has(day)) newestOfDay.set(day, each);
  }
  return [...newestOfDay.values()].slice(0, daysKept);
}

/** Copies what is committed to a file that appears when it is whole and on disk. Other processes may read and write the database meanwhile. */
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

/** Waits until a file, or the list of a directory's files, is on disk. */
export function flushFile(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
