import type { DatabaseSync } from "node:sqlite";
import type { LogFields } from "@galatea/base";
import { CommitMark } from "./commit-mark.ts";
import { examineDatabase, openDatabaseFile, type DatabaseExamination, type ExamineOptions } from "./examine.ts";
import { copyAside, copyCandidate, removeCandidate, replaceDatabase } from "./replace-database.ts";
import { listSnapshots, type Snapshot } from "./snapshot-files.ts";
import { applyMigrations, commitCount, createOwnTables } from "./tables.ts";

export interface OpenDatabaseOptions extends ExamineOptions {
  /** Snapshots from which a damaged database is restored; null if there are none. */
  readonly snapshots: { readonly folder: string; readonly nowMs: number } | null;
}

/** Damage that was found when the database was opened, and the resulting loss, as a log line. */
export interface DamageReport {
  readonly message: string;
  readonly fields: LogFields;
}

export interface OpenDatabase {
  readonly database: DatabaseSync;
  readonly mark: CommitMark;
  readonly finding: DamageReport | null;
}

/**
 * Opens a database whose files may be damaged. A damaged file is kept as `<file>.damaged-<number>`, and the database is
 * restored from the newest undamaged snapshot. `finding` reports what is lost. Throws only for other problems: a full
 * disk, a directory that is not writable, or a database of another release.
 */
export function openDatabase(options: OpenDatabaseOptions): OpenDatabase {
  const { path, migrations } = options;
  const mark = new CommitMark(`${path}.commits`);
  const { database, finding } = soundDatabase(options, mark.read());
  try {
    createOwnTables(database);
    applyMigrations(database, migrations);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    mark.write(commitCount(database));
  } catch (error) {
    database.close();
    throw error;
  }
  return { database, mark, finding };
}

/** Opens the database or restores it. `markedCount`: number of acknowledged commits according to the commit mark. */
function soundDatabase(options: OpenDatabaseOptions, markedCount: number): Omit<OpenDatabase, "mark"> {
  const { path, busyTimeoutMs } = options;
  const examined = examineDatabase(options);
  if (examined.at === "newer") {
    examined.database.close();
    throw new Error(
      `'${path}' is of a newer release of Galatea: ${examined.reason}; start that release, choose another directory with --data, ` +
        "or restore a backup of this release with `galatea restore`",
    );
  }
  const count = examined.at === "sound" ? commitCount(examined.database) : 0;
  if (examined.at === "sound" && count >= markedCount) return { database: examined.database, finding: null };
  const { source, damaged } = newestWholeSnapshot(options);
  const isNewer = source !== null && (examined.at !== "sound" || source.commitCount > count);
  if (examined.at === "absent" && source === null && markedCount === 0) {
    return { database: openDatabaseFile(path, busyTimeoutMs), finding: null };
  }
  if (examined.at === "foreign" && source === null && options.snapshots !== null) {
    examined.database.close();
    throw new Error(
      `'${path}' is from another release of Galatea: ${examined.reason}; start that release, choose another directory with --data, ` +
        "or restore a backup with `galatea restore`",
    );
  }
  // The files are copied before the database is closed, because closing merges the undamaged part of the log into the
  // database and removes the log.
  const aside = copyAside(path, "damaged").join(", ");
  if (examined.at === "sound" && !isNewer) {
    removeCandidate(path);
    const message = "the last writes to a database are lost: its write-ahead log is damaged and kept aside";
    return {
      database: examined.database,
      finding: { message, fields: { path, lostCommits: markedCount - count, aside } },
    };
  }
  if (examined.at !== "absent") examined.database?.close();
  replaceDatabase(path, source);
  return {
    database: openDatabaseFile(path, busyTimeoutMs),
    finding: {
      message:
        source === null
          ? "a database is damaged and has no intact snapshot: all of its data is lost"
          : "a database is damaged: it continues from its newest snapshot, and later writes are lost",
      fields: {
        path,
        reason: reasonOf(examined),
        ...(source === null ? {} : { snapshot: source.path, snapshotAgeSecs: source.ageSecs }),
        ...(markedCount === 0 ? {} : { lostCommits: Math.max(0, markedCount - (source?.commitCount ?? 0)) }),
        ...(damaged.length === 0 ? {} : { damagedSnapshots: damaged.map((each) => each.path).join(", ") }),
        aside,
      },
    },
  };
}

function reasonOf(examined: DatabaseExamination): string {
  if (examined.at === "damaged" || examined.at === "foreign") return examined.reason;
  return examined.at === "absent" ? "the file is missing" : "the end of its write-ahead log is missing";
}

interface Source {
  readonly at: "sound";
  readonly commitCount: number;
  readonly path: string;
  readonly ageSecs: number;
}

/** Finds the newest undamaged snapshot, and leaves a copy of it next to the database. */
function newestWholeSnapshot(options: OpenDatabaseOptions): { source: Source | null; damaged: readonly Snapshot[] } {
  const damaged: Snapshot[] = [];
  if (options.snapshots === null) return { source: null, damaged };
  const { folder, nowMs } = options.snapshots;
  for (const snapshot of listSnapshots(options.path, folder)) {
    const candidate = copyCandidate(snapshot.path, options);
    if (candidate.at === "sound") {
      const ageSecs = Math.round((nowMs - snapshot.madeMs) / 1000);
      return { source: { ...candidate, path: snapshot.path, ageSecs }, damaged };
    }
    damaged.push(snapshot);
  }
  removeCandidate(options.path);
  return { source: null, damaged };
}
