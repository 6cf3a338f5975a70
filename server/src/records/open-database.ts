import { copyFileSync, existsSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { LogFields } from "../base/index.ts";
import { CommitMark } from "./commit-mark.ts";
import { checkSeal, DatabaseSeal } from "./database-seal.ts";
import { chooseSource, examine, examineFurther, isDamage, openFile, type Examined } from "./examine.ts";
import { Journal, syncDirectory } from "./journal.ts";
import { readCommits, sumBeginning, type JournalBeginning } from "./journal-reading.ts";
import { rowText, type JournalContents } from "./journal-text.ts";
import type { Migration } from "./statement.ts";
import {
  allRows,
  applyMigrations,
  commitCount,
  createOwnTables,
  rowInserter,
  rowsOf,
  setCommitCount,
  statementRunner,
  tablesOf,
  type TableRow,
} from "./tables.ts";

export interface OpenDatabaseOptions {
  readonly path: string;
  readonly migrations: readonly Migration[];
  readonly busyTimeoutMs: number;
  /** Whether a second copy of everything is kept, from which what is damaged is restored. */
  readonly keepsJournal: boolean;
}

/** What was found damaged at opening and what was done about it: a line of the log. */
export interface Finding {
  readonly message: string;
  readonly fields: LogFields;
}

export interface OpenDatabase {
  readonly database: DatabaseSync;
  readonly journal: Journal | null;
  readonly mark: CommitMark;
  /** Null where there is no second copy. */
  readonly seal: DatabaseSeal | null;
  readonly findings: readonly Finding[];
}

const namesToldMax = 20;

/**
 * Opens a database whose files may be damaged. What is damaged is kept beside it as `<file>.damaged-<number>`, and what was lost or
 * restored is told in the findings. Throws only for what is no damage: a full disk, a directory that cannot be written.
 */
export function openDatabase(options: OpenDatabaseOptions): OpenDatabase {
  const { path, migrations, busyTimeoutMs, keepsJournal } = options;
  const journal = keepsJournal ? new Journal(`${path}.journal`) : null;
  const mark = new CommitMark(`${path}.commits`);
  const findings: Finding[] = [];
  const sealed = journal === null ? null : checkSeal(path, journal.path);
  let examined = examine({ path, migrations, busyTimeoutMs, pages: sealed === null ? "whole" : "known" });
  if (journal !== null && sealed !== null && examined.at === "sound") {
    const { database } = examined;
    const isGoneOnWith = knownCopies({ database, journal, mark }, sealed);
    if (isGoneOnWith !== null) {
      return prepared({ database, journal, mark }, options, findings, () => (isGoneOnWith ? sealed : null));
    }
    examined = examineFurther(examined);
  }
  const contents = journal?.read() ?? null;
  const counted = examined.at === "sound" ? commitCount(examined.database) : 0;
  const source = chooseSource({ at: examined.at, commitCount: counted }, contents, () => isSame(examined, contents));
  if (contents !== null && !contents.isWhole && journal !== null) {
    findings.push(journalFinding(contents, setAside(journal.path)));
  }
  const isReplaced = source !== "database";
  if (isReplaced) {
    findings.push(restore(options, examined, contents));
    examined = { at: "absent" };
  } else if (examined.at === "sound" && counted < mark.read()) {
    const aside = [path, `${path}-wal`].filter((file) => existsSync(file)).map(copyAside);
    const message = "the last writes to a database are lost: its write-ahead log is damaged and kept aside";
    findings.push({ message, fields: { path, lostCommits: mark.read() - counted, aside: aside.join(", ") } });
  }
  const database = examined.at === "sound" ? examined.database : openFile(path, busyTimeoutMs);
  return prepared({ database, journal, mark }, options, findings, () => {
    const isCurrent = contents !== null && contents.isWhole && contents.commits.length === 0 && !isReplaced;
    if (!isCurrent || contents.repairedCount > 0 || contents.commitCount !== commitCount(database)) return null;
    return journal === null ? null : beginningOf(journal.path, contents.commitCount);
  });
}

type Copies = Pick<OpenDatabase, "database" | "mark"> & { readonly journal: Journal };

/**
 * Whether both copies say the same, for which the counts of commits are enough where a seal says that neither was changed: true, and the
 * journal is gone on with; false where the database has a commit that the journal has not, as a kill between the two leaves it; null
 * where one has lost something.
 */
function knownCopies({ database, journal, mark }: Copies, sealed: JournalBeginning): boolean | null {
  const commits = readCommits(journal.path, sealed);
  const count = commitCount(database);
  if (commits === null || count < mark.read() || count < commits.commitCount) return null;
  return count === commits.commitCount && commits.isEnded;
}

/** Of a journal that is all beginning. */
function beginningOf(path: string, count: number): JournalBeginning | null {
  const byteLength = statSync(path).size;
  const sum = sumBeginning(path, byteLength);
  return sum === null ? null : { byteLength, sum, commitCount: count };
}

/** Makes the tables, and goes on with the journal whose beginning is given, or begins one anew where it is none or a migration was applied. */
function prepared(
  { database, journal, mark }: Pick<OpenDatabase, "database" | "journal" | "mark">,
  { path, migrations }: OpenDatabaseOptions,
  findings: Finding[],
  beginning: () => JournalBeginning | null,
): OpenDatabase {
  const seal = journal === null ? null : new DatabaseSeal(path);
  try {
    createOwnTables(database);
    const isMigrated = applyMigrations(database, migrations);
    const resumed = isMigrated ? null : beginning();
    if (resumed !== null) journal?.resume(resumed);
    else journal?.begin(database);
    const unsealed = checkpointSealed(database, journal, seal);
    if (unsealed !== null) findings.push(unsealed);
    mark.write(commitCount(database));
  } catch (error) {
    seal?.[Symbol.dispose]();
    database.close();
    throw error;
  }
  return { database, journal, mark, seal, findings };
}

/** Moves all that is in the log into the file; what is told where no seal could be written of it, which keeps nothing from going on. */
export function checkpointSealed(
  database: DatabaseSync,
  journal: Journal | null,
  seal: DatabaseSeal | null,
): Finding | null {
  const pages = seal?.pagesInLog() ?? new Set();
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  return keepSeal(() => seal?.write(journal?.beginning ?? null, pages));
}

/** Attempts to write a seal. */
export function keepSeal(write: () => void): Finding | null {
  try {
    write();
    return null;
  } catch (error) {
    const message = "the checksums of a database were not written: the next start reads it row by row";
    return { message, fields: { error: String(error) } };
  }
}

/** Whether the journal says what a sound database holds. */
function isSame(examined: Examined, contents: JournalContents | null): boolean {
  if (examined.at !== "sound" || contents === null) return false;
  return differences(examined.database, contents).length === 0;
}

/** Rows that the one has and the other has not, by their first columns. */
function differences(database: DatabaseSync, contents: JournalContents): readonly string[] {
  const held = new Set<string>();
  for (const row of allRows(database)) held.add(rowText(row));
  using replayed = new DatabaseSync(":memory:");
  const missing: string[] = [];
  for (const row of stateOf(replayed, contents, database)) if (!held.delete(rowText(row))) missing.push(nameOf(row));
  const surplus: string[] = [];
  if (held.size > 0) for (const row of allRows(database)) if (held.has(rowText(row))) surplus.push(nameOf(row));
  return [...new Set([...surplus, ...missing])];
}

/** What a journal comes to: where it has commits, replayed in an empty database that gets the tables of another one. */
function* stateOf(into: DatabaseSync, contents: JournalContents, like: DatabaseSync): Generator<TableRow> {
  if (contents.commits.length === 0) {
    yield* contents.rows;
    return;
  }
  const made = like.prepare(
    "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
  );
  for (const { sql } of made.all()) into.exec(String(sql));
  into.exec("BEGIN");
  replay(into, contents);
  yield* allRows(into);
}

/** Gives how many lines SQLite refused: those that need one which is damaged. */
function replay(database: DatabaseSync, contents: JournalContents): number {
  let refusedCount = 0;
  const attempt = (run: () => void) => {
    try {
      run();
    } catch (error) {
      if ((error as { errcode?: number }).errcode === undefined) throw error;
      refusedCount += 1;
    }
  };
  const insert = rowInserter(database);
  const run = statementRunner(database);
  for (const row of contents.rows) attempt(() => insert(row));
  for (const { statements } of contents.commits) for (const statement of statements) attempt(() => run(statement));
  return refusedCount;
}

/** Makes the database anew from its journal and from what can still be read of it; the damaged files are kept aside. */
function restore(options: OpenDatabaseOptions, examined: Examined, contents: JournalContents | null): Finding {
  const { path, migrations, busyTimeoutMs } = options;
  const made = `${path}.new`;
  for (const file of [made, `${made}-wal`, `${made}-shm`]) rmSync(file, { force: true });
  const reason = reasonOf(examined, contents);
  let [restoredCount, salvagedCount, refusedCount, unread] = [0, 0, 0, ""];
  let names: readonly string[] = [];
  const fresh = new DatabaseSync(made, { timeout: busyTimeoutMs });
  try {
    createOwnTables(fresh);
    const applied = contents?.header?.migrations;
    applyMigrations(fresh, applied === undefined ? migrations : migrations.filter(({ id }) => applied.includes(id)));
    fresh.exec("BEGIN");
    if (contents !== null) {
      refusedCount = replay(fresh, contents);
      restoredCount = [...allRows(fresh)].length;
    }
    if (examined.at === "sound" && contents !== null) names = differences(examined.database, contents);
    const from = examined.at === "absent" || contents?.isWhole === true ? null : examined.database;
    if (from !== null) [salvagedCount, unread] = salvage(from, fresh);
    setCommitCount(
      fresh,
      Math.max(contents?.commitCount ?? 0, examined.at === "sound" ? commitCount(examined.database) : 0),
    );
    fresh.exec("COMMIT");
  } finally {
    fresh.close();
  }
  // Before the close: it would bring what is sound of the log into the database and remove the log.
  const aside = [path, `${path}-wal`].filter((file) => existsSync(file)).map(copyAside);
  if (examined.at !== "absent") examined.database?.close();
  for (const file of [`${path}-wal`, `${path}-shm`]) rmSync(file, { force: true });
  renameSync(made, path);
  syncDirectory(dirname(path));
  return {
    message: "a database is damaged; it is kept aside and its records are restored",
    fields: {
      path,
      reason,
      aside: aside.join(", "),
      fromJournal: restoredCount,
      fromDatabase: salvagedCount,
      refused: refusedCount,
      unread,
      differing: namesText(names),
    },
  };
}

function reasonOf(examined: Examined, contents: JournalContents | null): string {
  if (examined.at === "damaged") return examined.reason;
  if (examined.at === "absent") return "it is missing";
  const missing = (contents?.commitCount ?? 0) - commitCount(examined.database);
  return missing > 0 ? `its last ${missing} commits are missing` : "its content is not what was written";
}

/** Copies every row that can be read; a table's rows behind a damaged page cannot. Gives the tables that were not read to their end. */
function salvage(from: DatabaseSync, into: DatabaseSync): [count: number, unread: string] {
  let count = 0;
  const insert = rowInserter(into);
  const unread: string[] = [];
  for (const table of tablesOf(into)) {
    try {
      for (const row of rowsOf(from, table)) if (insert(row)) count += 1;
    } catch (error) {
      if (!isDamage(error) && !(error instanceof TypeError)) throw error;
      unread.push(table);
    }
  }
  return [count, unread.join(", ")];
}

function journalFinding(contents: JournalContents, aside: string): Finding {
  const lines = contents.damagedLines.join(", ");
  return {
    message: "the second copy of a database is damaged; it is kept aside and written anew",
    fields: { aside, damagedLines: contents.damagedCount > contents.damagedLines.length ? `${lines}, ...` : lines },
  };
}

function nameOf({ table, row }: TableRow): string {
  const shown = row.slice(0, 2).map((value) => (value instanceof Uint8Array ? "bytes" : String(value).slice(0, 80)));
  return `${table} ${shown.join(" ")}`;
}

function namesText(names: readonly string[]): string {
  const shown = names.slice(0, namesToldMax).join("; ");
  return names.length > namesToldMax ? `${shown}; and ${names.length - namesToldMax} more` : shown;
}

/** The first free name of `<path>.damaged-<number>`. */
function asideName(path: string): string {
  for (let number = 1; ; number += 1) {
    const name = `${path}.damaged-${number}`;
    if (!existsSync(name)) return name;
  }
}

function copyAside(path: string): string {
  const aside = asideName(path);
  copyFileSync(path, aside);
  return basename(aside);
}

function setAside(path: string): string {
  const aside = asideName(path);
  renameSync(path, aside);
  return basename(aside);
}
