import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Migration, Statement } from "./statement.ts";

/** Tables that the records module needs in each database. */
const ownTables = `
  CREATE TABLE IF NOT EXISTS applied_migration (id TEXT PRIMARY KEY) STRICT;
  CREATE TABLE IF NOT EXISTS commit_count (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL) STRICT;
  INSERT OR IGNORE INTO commit_count VALUES (1, 0)`;

export function createOwnTables(database: DatabaseSync): void {
  database.exec(ownTables);
}

/** Applies the missing migrations, each in its own transaction. */
export function applyMigrations(database: DatabaseSync, migrations: readonly Migration[]): void {
  for (const { id, sql } of migrations) {
    if (database.prepare("SELECT 1 FROM applied_migration WHERE id = ?").get(id) !== undefined) continue;
    database.exec("BEGIN IMMEDIATE");
    try {
      database.exec(sql);
      database.prepare("INSERT INTO applied_migration (id) VALUES (?)").run(id);
      database.exec("COMMIT");
    } catch (error) {
      database.exec("ROLLBACK");
      throw new Error(`migration ${id}: ${(error as Error).message}`, { cause: error });
    }
  }
}

/** Returns the migrations in the order in which they were applied. */
export function appliedMigrations(database: DatabaseSync): readonly string[] {
  return database
    .prepare("SELECT id FROM applied_migration ORDER BY rowid")
    .all()
    .map(({ id }) => String(id));
}

export function commitCount(database: DatabaseSync): number {
  return Number(database.prepare("SELECT count FROM commit_count WHERE one = 1").get()?.["count"] ?? 0);
}

/**
 * Returns the SQL texts of all tables and indexes, which are equal for databases with the same migrations. SQLite's own
 * tables are excluded, because `VACUUM INTO` copies `sqlite_sequence` only while a table needs it.
 */
export function databaseSchema(database: DatabaseSync): string {
  const sql = `SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY type, name`;
  return JSON.stringify(database.prepare(sql).all());
}

/** Maximum number of cached prepared statements. The writers use few, fixed texts. */
const preparedMax = 200;

/** Returns a function that runs statements and prepares each text once. */
export function statementRunner(database: DatabaseSync): (statement: Statement) => ReturnType<StatementSync["run"]> {
  const prepared = new Map<string, StatementSync>();
  return ({ sql, values }) => {
    let statement = prepared.get(sql);
    if (statement === undefined) {
      statement = database.prepare(sql);
      if (prepared.size >= preparedMax) prepared.clear();
      prepared.set(sql, statement);
    }
    return statement.run(...values);
  };
}
