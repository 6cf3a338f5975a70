import { existsSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { silentLogger } from "@galatea/base";
import { documentMigrations, lastVersionSql } from "./document-tables.ts";
import { copyPageMax, type CopiedDocument, type CopySource, type CopyTarget } from "./record-copy.ts";
import { openRecords, recordsDefaults } from "./records.ts";
import { restoreDocuments } from "./sqlite-documents.ts";
import { appliedMigrations } from "./tables.ts";
import type { Statement } from "./statement.ts";

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

/** Opens the records of a database file as they are now; a platform may go on writing them. */
export function openSqliteSource(path: string, { isInUse }: Pick<CopySource, "isInUse">): CopySource {
  const database = new DatabaseSync(path, { readOnly: true, timeout: recordsDefaults.busyTimeoutMs });
  try {
    checkRelease(database, path);
    database.exec("BEGIN");
    const version = Number(database.prepare(lastVersionSql).get()?.["version"]);
    return {
      version,
      isInUse,
      pages: () => pagesOf(database),
      async [Symbol.asyncDispose]() {
        database.close();
      },
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

function checkRelease(database: DatabaseSync, path: string): void {
  const applied = appliedMigrations(database);
  const known = documentMigrations.map(({ id }) => id);
  if (applied.some((id) => !known.includes(id))) {
    throw new Error(`'${path}' is of a newer release of Galatea; copy it with that release`);
  }
  if (applied.length < known.length) {
    throw new Error(`'${path}' is of an older release of Galatea; start this release over it once, then copy it`);
  }
}

/**
 * Opens a database file that is absent or without documents, whose directory the caller has locked. The copy is a file of
 * its own until it is committed.
 */
export async function openSqliteTarget(path: string): Promise<CopyTarget> {
  if (existsSync(path)) {
    using database = new DatabaseSync(path, { readOnly: true, timeout: recordsDefaults.busyTimeoutMs });
    if (database.prepare("SELECT 1 FROM document LIMIT 1").get() !== undefined) {
      throw new Error(`'${path}' has records; choose another data directory, or move the file away`);
    }
  }
  const copyPath = `${path}.copy`;
  const remove = () => {
    for (const end of ["", "-wal", "-shm", ".commits"]) rmSync(`${copyPath}${end}`, { force: true });
  };
  remove();
  const records = await openRecords({
    ...recordsDefaults,
    path: copyPath,
    migrations: documentMigrations,
    logger: silentLogger,
  });
  return {
    async write(page) {
      await records.write(page.flatMap(insertStatements));
    },
    async *pages() {
      using database = new DatabaseSync(copyPath, { readOnly: true, timeout: recordsDefaults.busyTimeoutMs });
      yield* pagesOf(database);
    },
    async commit(version) {
      await records.write([{ sql: "UPDATE document_feed SET forgotten_version = ?", values: [version] }]);
      await records[Symbol.asyncDispose]();
      const restored = restoreDocuments(copyPath, path);
      if (restored.at === "refused") throw new Error(`the copy is damaged: ${restored.reason}`);
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
