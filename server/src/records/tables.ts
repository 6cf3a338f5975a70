import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Migration, SqlValue, Statement } from "./statement.ts";

/** Every row of a table, as text that says the same for the same values. */
export interface TableRow {
  readonly table: string;
  readonly row: readonly SqlValue[];
}

/** What the records themselves keep in each database. */
const ownTables = `
  CREATE TABLE IF NOT EXISTS applied_migration (id TEXT PRIMARY KEY) STRICT;
  CREATE TABLE IF NOT EXISTS commit_count (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL) STRICT;
  INSERT OR IGNORE INTO commit_count VALUES (1, 0)`;

export function createOwnTables(database: DatabaseSync): void {
  database.exec(ownTables);
}

/** Applies those that are not applied yet, each in a transaction of its own; whether there was one. */
export function applyMigrations(database: DatabaseSync, migrations: readonly Migration[]): boolean {
  let isChanged = false;
  for (const { id, sql } of migrations) {
    if (database.prepare("SELECT 1 FROM applied_migration WHERE id = ?").get(id) !== undefined) continue;
    database.exec("BEGIN IMMEDIATE");
    try {
      database.exec(sql);
      database.prepare("INSERT INTO applied_migration (id) VALUES (?)").run(id);
      database.exec("COMMIT");
    } catch (error) {
      database.exec("ROLLBACK");
      throw new Error(`migration ${id}: ${String(error)}`, { cause: error });
    }
    isChanged = true;
  }
  return isChanged;
}

/** In the order in which they were applied. */
export function appliedMigrations(database: DatabaseSync): readonly string[] {
  return database
    .prepare("SELECT id FROM applied_migration ORDER BY rowid")
    .all()
    .map(({ id }) => String(id));
}

export function commitCount(database: DatabaseSync): number {
  return Number(database.prepare("SELECT count FROM commit_count WHERE one = 1").get()?.["count"] ?? 0);
}

export function setCommitCount(database: DatabaseSync, count: number): void {
  database.prepare("INSERT OR REPLACE INTO commit_count VALUES (1, ?)").run(count);
}

/** The texts that made the tables and indexes: equal for databases to which the same migrations were applied. */
export function schemaOf(database: DatabaseSync): string {
  const rows = database.prepare("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name").all();
  return JSON.stringify(rows);
}

/** The tables that migrations made. */
export function tablesOf(database: DatabaseSync): readonly string[] {
  return database
    .prepare(
      `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        AND name NOT IN ('applied_migration', 'commit_count') ORDER BY name`,
    )
    .all()
    .map(({ name }) => String(name));
}

export function* rowsOf(database: DatabaseSync, table: string): Generator<TableRow> {
  const statement = database.prepare(`SELECT * FROM ${quoted(table)}`);
  statement.setReturnArrays(true);
  statement.setReadBigInts(true);
  for (const row of statement.iterate() as unknown as Iterable<SqlValue[]>) yield { table, row };
}

export function* allRows(database: DatabaseSync): Generator<TableRow> {
  for (const table of tablesOf(database)) yield* rowsOf(database, table);
}

/** Inserts rows; one whose key is there already stays as it is, which is told. */
export function rowInserter(database: DatabaseSync): (row: TableRow) => boolean {
  const prepared = new Map<string, StatementSync>();
  return ({ table, row }) => {
    const id = `${row.length} ${table}`;
    let statement = prepared.get(id);
    if (statement === undefined) {
      const places = row.map(() => "?").join(", ");
      statement = database.prepare(`INSERT OR IGNORE INTO ${quoted(table)} VALUES (${places})`);
      prepared.set(id, statement);
    }
    return statement.run(...row).changes !== 0;
  };
}

/** Prepared statements kept; the writers' texts are few and fixed. */
const preparedMax = 200;

/** Runs statements, each text of which is prepared once. */
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

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
