import { existsSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { silentLogger } from "@galatea/base";
import { documentMigrations, lastVersionSql } from "./document-tables.ts";
import { copyPageMax, type CopiedDocument, type CopySource, type CopyTarget } from "./record-copy.ts";
import { openRecords, recordsDefaults } from "./records.ts";
import { metricMigrations } from "./metric-tables.ts";
import { restoreDatabase } from "./replace-database.ts";
import { appliedMigrations } from "./tables.ts";
import type { Migration, Statement } from "./statement.ts";

const pageSql = `SELECT kind, key, version, body, (
    SELECT json_group_object(name, value) FROM document_order o WHERE o.kind = d.kind AND o.key = d.key
  ) AS orders FROM document d WHERE (kind, key) > (?, ?) ORDER BY kind, key LIMIT ${copyPageMax}`;

async function* pagesOf(database: DatabaseSync): AsyncGenerator<readonly CopiedDocument[], void, void> {
  const statement = database.prepare(pageSql);
  for (let [kind, key] = ["", ""]; ;) {
    const page = statement.all(kind, key).map((row) => ({
      kind: String(row["kind"]),
      key: String(row["key"]),
      version: Number(row["version"]),
      body: String(row["body"]),
      orders: JSON.parse(String(row["orders"])) as Record<string, string>,
    }));
    if (page.length > 0) yield page;
    const last = page.at(-1);
    if (last === undefined || page.length < copyPageMax) return;
    ({ kind, key } = last);
  }
}

/** The database files of a data directory. */
export interface SqlitePaths {
  readonly records: string;
  readonly metrics: string;
}

/** Opens a snapshot of the records and metrics of database files. A platform may continue to write them. */
export function openSqliteSource(paths: SqlitePaths, { isInUse }: Pick<CopySource, "isInUse">): CopySource {
  using opening = new DisposableStack();
  const database = openReadOnly(opening, paths.records, documentMigrations);
  // The file is absent if the platform has always used PostgreSQL.
  const metrics = existsSync(paths.metrics) ? openReadOnly(opening, paths.metrics, metricMigrations) : null;
  const version = Number(database.prepare(lastVersionSql).get()?.["version"]);
  const opened = opening.move();
  return {
    version,
    isInUse,
    pages: () => pagesOf(database),
    metrics: { rows: async (sql, ...values) => metrics?.prepare(sql).all(...values) ?? [] },
    async [Symbol.asyncDispose]() {
      opened.dispose();
    },
  };
}

/** Opens a file in a read transaction. Throws if another release has written the file. */
function openReadOnly(opening: DisposableStack, path: string, migrations: readonly Migration[]): DatabaseSync {
  const options = { readOnly: true, timeout: recordsDefaults.busyTimeoutMs };
  const database = opening.adopt(new DatabaseSync(path, options), (open) => open.close());
  checkRelease(database, path, migrations);
  database.exec("BEGIN");
  return database;
}

function checkRelease(database: DatabaseSync, path: string, migrations: readonly Migration[]): void {
  const applied = appliedMigrations(database);
  const known = migrations.map(({ id }) => id);
  if (applied.some((id) => !known.includes(id))) {
    throw new Error(`'${path}' was written by a newer release of Galatea. Copy it with that release`);
  }
  if (applied.length < known.length) {
    throw new Error(
      `'${path}' was written by an older release of Galatea. Run 'galatea up' of this release with its data directory once, then repeat the copy`,
    );
  }
}

/**
 * Opens target files, which must be absent or empty and whose directory the caller has locked. The copies are separate
 * files until they are committed.
 */
export async function openSqliteTarget(paths: SqlitePaths): Promise<CopyTarget> {
  refuseFilled(paths.records, "document", "records");
  refuseFilled(paths.metrics, "metric_series", "metrics");
  await using opening = new AsyncDisposableStack();
  const documents = opening.use(await openCopy(paths.records, documentMigrations));
  const metrics = opening.use(await openCopy(paths.metrics, metricMigrations));
  const opened = opening.move();
  return {
    metrics: {
      async insert(statement) {
        await metrics.records.write([statement]);
      },
      rows: (sql, ...values) => metrics.records.rows(sql, ...values),
    },
    async write(page) {
      await documents.records.write(page.flatMap(insertStatements));
    },
    async *pages() {
      using database = new DatabaseSync(documents.path, { readOnly: true, timeout: recordsDefaults.busyTimeoutMs });
      yield* pagesOf(database);
    },
    async commit(version) {
      await documents.records.write([{ sql: "UPDATE document_feed SET forgotten_version = ?", values: [version] }]);
      // The documents are replaced last. Until then, a platform finds no records.
      await metrics.replace();
      await documents.replace();
    },
    async [Symbol.asyncDispose]() {
      await opened.disposeAsync();
    },
  };
}

function refuseFilled(path: string, table: string, content: string): void {
  if (!existsSync(path)) return;
  using database = new DatabaseSync(path, { readOnly: true, timeout: recordsDefaults.busyTimeoutMs });
  if (database.prepare(`SELECT 1 FROM ${table} LIMIT 1`).get() === undefined) return;
  throw new Error(`'${path}' has ${content}; choose another data directory, or move the file away`);
}

/** Creates an empty copy next to a database file. Disposal removes the copy. */
async function openCopy(original: string, migrations: readonly Migration[]) {
  const path = `${original}.copy`;
  const remove = () => {
    for (const end of ["", "-wal", "-shm", ".commits"]) rmSync(`${path}${end}`, { force: true });
  };
  remove();
  const records = await openRecords({ ...recordsDefaults, path, migrations, logger: silentLogger });
  return {
    path,
    records,
    /** Closes the copy and replaces the original file by it. */
    async replace() {
      await records[Symbol.asyncDispose]();
      const { busyTimeoutMs } = recordsDefaults;
      const restored = restoreDatabase(path, { path: original, migrations, busyTimeoutMs });
      if (restored.at === "refused") throw new Error(`the copy of '${original}' is damaged: ${restored.reason}`);
    },
    async [Symbol.asyncDispose]() {
      await records[Symbol.asyncDispose]();
      remove();
    },
  };
}

function insertStatements({ kind, key, version, body, orders }: CopiedDocument): readonly Statement[] {
  const document = { sql: "INSERT INTO document VALUES (?, ?, ?, ?)", values: [kind, key, version, body] };
  const ordered = Object.entries(orders).map(([name, value]) => ({
    sql: "INSERT INTO document_order VALUES (?, ?, ?, ?)",
    values: [kind, name, value, key],
  }));
  return [document, ...ordered];
}
