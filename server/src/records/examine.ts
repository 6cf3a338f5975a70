import { accessSync, constants, existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { JournalContents } from "./journal-text.ts";
import type { Migration } from "./statement.ts";
import { appliedMigrations, applyMigrations, createOwnTables, schemaOf } from "./tables.ts";

export type Examined =
  | { readonly at: "absent" }
  | { readonly at: "sound"; readonly database: DatabaseSync }
  /** `database` is open where SQLite opens it at all. */
  | { readonly at: "damaged"; readonly reason: string; readonly database: DatabaseSync | null };

export interface ExamineOptions {
  readonly path: string;
  readonly migrations: readonly Migration[];
  readonly busyTimeoutMs: number;
  /** Nothing is looked at where the pages are known to be sound. */
  readonly pages: "whole" | "known";
}

/**
 * SQLITE_ERROR, SQLITE_READONLY, SQLITE_CORRUPT, SQLITE_FORMAT, SQLITE_NOTADB: what a damaged file leads to. A full or absent disk is
 * none of them, and whether the file may be written is asked before.
 */
const damageCodes: ReadonlySet<number> = new Set([1, 8, 11, 24, 26]);

/** Opens a database and looks whether its pages, its tables and its list of migrations are as SQLite and the migrations made them. */
export function examine(options: ExamineOptions): Examined {
  const { path, migrations } = options;
  if (!existsSync(path)) return { at: "absent" };
  accessSync(path, constants.R_OK | constants.W_OK);
  let database: DatabaseSync | null = null;
  try {
    database = openFile(path, options.busyTimeoutMs);
    const reason = damageOf(database, migrations, options.pages);
    return reason === null ? { at: "sound", database } : { at: "damaged", reason, database };
  } catch (error) {
    if (!isDamage(error)) {
      database?.close();
      throw error;
    }
    return { at: "damaged", reason: String(error), database };
  }
}

/** The same after a look at the pages of one that was taken for known. */
export function examineFurther(examined: Examined & { readonly at: "sound" }): Examined {
  const { database } = examined;
  try {
    const reason = pageDamage(database);
    return reason === null ? examined : { at: "damaged", reason, database };
  } catch (error) {
    if (!isDamage(error)) throw error;
    return { at: "damaged", reason: String(error), database };
  }
}

export function openFile(path: string, busyTimeoutMs: number): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
  try {
    // FULL: a commit returns after fsync of the log. What is acknowledged survives power loss.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

export function isDamage(error: unknown): boolean {
  const { errcode } = error as { readonly errcode?: number };
  return errcode !== undefined && damageCodes.has(errcode & 0xff);
}

function damageOf(
  database: DatabaseSync,
  migrations: readonly Migration[],
  pages: ExamineOptions["pages"],
): string | null {
  const found = pages === "known" ? null : pageDamage(database);
  if (found !== null) return found;
  // A file that nothing was written to yet is that of a start that ended early.
  const isEmpty = schemaOf(database) === "[]";
  createOwnTables(database);
  // One flipped bit of the file's header makes it read-only.
  database.exec("BEGIN IMMEDIATE; UPDATE commit_count SET count = count; ROLLBACK");
  if (isEmpty) return null;
  const applied = appliedMigrations(database);
  const known = migrations.map(({ id }) => id);
  const length = Math.min(applied.length, known.length);
  if (applied.slice(0, length).join("\n") !== known.slice(0, length).join("\n")) {
    return `it lists migrations that are none of ours: ${applied.join(", ").slice(0, 200)}`;
  }
  // Of a later release: what its migrations made is not known here.
  if (applied.length > known.length) return null;
  return schemaOf(database) === expectedSchema(migrations.slice(0, length))
    ? null
    : "its tables are not those it was made with";
}

/** Of indexes too: SQLite's quick check passes over an index that leads elsewhere, or nowhere, and each use of it fails. */
function pageDamage(database: DatabaseSync): string | null {
  const [first] = database.prepare("PRAGMA integrity_check(1)").all();
  const found = String(first?.["integrity_check"] ?? "ok");
  return found === "ok" ? null : found;
}

function expectedSchema(migrations: readonly Migration[]): string {
  using database = new DatabaseSync(":memory:");
  createOwnTables(database);
  applyMigrations(database, migrations);
  return schemaOf(database);
}

export type Source = "database" | "journal" | "both";

/** Which copy the records are taken from. `isEqual` is asked only where both are sound and count the same commits. */
export function chooseSource(
  database: { readonly at: Examined["at"]; readonly commitCount: number },
  journal: Pick<JournalContents, "isWhole" | "commitCount"> | null,
  isEqual: () => boolean,
): Source {
  const isSound = database.at === "sound";
  if (journal === null) return isSound || database.at === "absent" ? "database" : "both";
  if (!isSound) return journal.isWhole ? "journal" : "both";
  if (database.commitCount > journal.commitCount) return "database";
  if (database.commitCount < journal.commitCount) return journal.isWhole ? "journal" : "both";
  return !journal.isWhole || isEqual() ? "database" : "journal";
}
