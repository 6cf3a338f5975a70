import { accessSync, constants, existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import type { Migration } from "./statement.ts";
import { appliedMigrations, applyMigrations, createOwnTables, databaseSchema } from "./tables.ts";

export type DatabaseExamination =
  | { readonly at: "absent" }
  | { readonly at: "sound"; readonly database: DatabaseSync }
  /** The pages are undamaged, but another release created the tables. */
  | { readonly at: "foreign"; readonly reason: string; readonly database: DatabaseSync }
  /** A newer release created the tables. */
  | { readonly at: "newer"; readonly reason: string; readonly database: DatabaseSync }
  /** `database`: null if SQLite cannot open the file. */
  | { readonly at: "damaged"; readonly reason: string; readonly database: DatabaseSync | null };

export interface ExamineOptions {
  readonly path: string;
  readonly migrations: readonly Migration[];
  readonly busyTimeoutMs: number;
}

/**
 * The result codes of a damaged file: SQLITE_ERROR, SQLITE_READONLY, SQLITE_CORRUPT, SQLITE_FORMAT and SQLITE_NOTADB. A
 * full or missing disk has other codes, and access to the file is checked before.
 */
const damageCodes: ReadonlySet<number> = new Set([1, 8, 11, 24, 26]);

/** Opens a database and checks it: its pages, tables and applied migrations. */
export function examineDatabase({ path, migrations, busyTimeoutMs }: ExamineOptions): DatabaseExamination {
  if (!existsSync(path)) return { at: "absent" };
  accessSync(path, constants.R_OK | constants.W_OK);
  let database: DatabaseSync | null = null;
  try {
    database = openDatabaseFile(path, busyTimeoutMs);
    const flaw = flawOf(database, migrations);
    return flaw === null ? { at: "sound", database } : { ...flaw, database };
  } catch (error) {
    if (!isDamage(error)) {
      database?.close();
      throw error;
    }
    return { at: "damaged", reason: String(error), database };
  }
}

export function openDatabaseFile(path: string, busyTimeoutMs: number): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
  try {
    // With FULL, a commit returns after fsync of the log, so that acknowledged writes survive power loss.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

function isDamage(error: unknown): boolean {
  const { errcode } = error as { readonly errcode?: number };
  return errcode !== undefined && damageCodes.has(errcode & 0xff);
}

interface Flaw {
  readonly at: "foreign" | "newer" | "damaged";
  readonly reason: string;
}

function flawOf(database: DatabaseSync, migrations: readonly Migration[]): Flaw | null {
  const found = pageDamage(database);
  if (found !== null) return { at: "damaged", reason: found };
  // A start that ended early leaves a file without tables.
  const isEmpty = databaseSchema(database) === "[]";
  createOwnTables(database);
  // A flipped bit in the file's header can make the database read-only, so a write is tested.
  database.exec("BEGIN IMMEDIATE; UPDATE commit_count SET count = count; ROLLBACK");
  if (isEmpty) return null;
  const applied = appliedMigrations(database);
  const known = migrations.map(({ id }) => id);
  const length = Math.min(applied.length, known.length);
  if (applied.slice(0, length).join("\n") !== known.slice(0, length).join("\n")) {
    return { at: "foreign", reason: `it lists unknown migrations: ${applied.join(", ").slice(0, 200)}` };
  }
  if (applied.length > known.length) {
    return {
      at: "newer",
      reason: `it lists migrations of a newer release: ${applied.slice(length).join(", ").slice(0, 200)}`,
    };
  }
  return databaseSchema(database) === expectedSchema(migrations.slice(0, length))
    ? null
    : { at: "damaged", reason: "its tables do not match its migrations" };
}

/**
 * Returns the first damage of a database; null if there is none. Uses the full check, because `quick_check` misses a
 * flipped bit in an index; reads by key would then miss an existing document. For 50,000 documents (112 MiB), the full
 * check takes 0.2 s of CPU time and the quick one 0.1 s.
 */
function pageDamage(database: DatabaseSync): string | null {
  const [first] = database.prepare("PRAGMA integrity_check(1)").all();
  const found = String(first?.["integrity_check"] ?? "ok");
  return found === "ok" ? null : found;
}

function expectedSchema(migrations: readonly Migration[]): string {
  using database = new DatabaseSync(":memory:");
  createOwnTables(database);
  applyMigrations(database, migrations);
  return databaseSchema(database);
}
