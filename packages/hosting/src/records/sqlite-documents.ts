import { ChangeNotifier, rejectOnAbort, type Logger } from "@galatea/base";
import {
  batchEndSql,
  changedDocument,
  changesSql,
  changeStatements,
  documentMigrations,
  lastVersionSql,
  listStatement,
  pageOfRows,
} from "./document-tables.ts";
import {
  ChangesForgotten,
  DocumentConflict,
  documentsListedMax,
  type ChangeBatch,
  type Document,
  type DocumentChange,
  type Documents,
  type DocumentPage,
  type DocumentQuery,
} from "./documents.ts";
import { restoreDatabase, type Restored } from "./replace-database.ts";
import { openRecords, recordsDefaults, type Records } from "./records.ts";
import type { SnapshotOptions } from "./snapshots.ts";
import { RecordsError, type SqlValue, type Statement } from "./statement.ts";

export interface DocumentLimits {
  /** Number of deletions that are kept for readers of changes. Above it, the older half is forgotten. */
  readonly deletionsMax: number;
  /** Maximum number of changes in a batch. Changes of one write are never split. */
  readonly batchMax: number;
}

const documentLimits: DocumentLimits = { deletionsMax: 20_000, batchMax: 500 };

export interface DocumentsOptions {
  /** The database file; the folder must exist. */
  readonly path: string;
  /**
   * Options of snapshots. Null (the default): no snapshots are made, and a damaged database is replaced by an empty
   * one.
   */
  readonly snapshots?: SnapshotOptions | null;
  readonly logger: Logger;
}

/** Opens the documents of a database file. Disposal closes the file. */
export async function openDocuments({
  path,
  snapshots = null,
  logger,
}: DocumentsOptions): Promise<Documents & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const records = opening.use(
    await openRecords({ ...recordsDefaults, path, migrations: documentMigrations, snapshots, logger }),
  );
  const documents = await openDocumentsOver(records);
  opening.move();
  return documents;
}

/**
 * Replaces the documents at `path` by a copy of `from`. No process may have `path` open. Returns a refusal if `from`
 * has no undamaged documents.
 */
export function restoreDocuments(from: string, path: string): Restored {
  return restoreDatabase(from, { path, migrations: documentMigrations, busyTimeoutMs: recordsDefaults.busyTimeoutMs });
}

/** Opens documents in a database with the tables of `documentMigrations`. Disposal closes the database. */
export async function openDocumentsOver(
  records: Records,
  limits: DocumentLimits = documentLimits,
): Promise<Documents & AsyncDisposable> {
  const documents = new SqliteDocuments(records, limits);
  await documents.open();
  return documents;
}

class SqliteDocuments implements Documents, AsyncDisposable {
  readonly #records: Records;
  readonly #limits: DocumentLimits;
  readonly #written = new ChangeNotifier();
  /**
   * The last assigned version, even if its write fails. Versions ascend in the order of calls, and commits have the
   * same order.
   */
  #input = 0;
  #deletionCount = 0;

  constructor(records: Records, limits: DocumentLimits) {
    this.#records = records;
    this.#limits = limits;
  }

  async open(): Promise<void> {
    this.#input = await this.version();
    this.#deletionCount = await this.#number("SELECT COUNT(*) AS number FROM document_gone");
  }

  async get(kind: string, key: string): Promise<Document | null> {
    const sql = "SELECT version, body FROM document WHERE kind = ? AND key = ?";
    const [row] = await this.#records.rows(sql, kind, key);
    return row === undefined ? null : { kind, key, version: Number(row["version"]), body: String(row["body"]) };
  }

  async list(query: DocumentQuery): Promise<DocumentPage> {
    const limit = Math.min(query.limit, documentsListedMax);
    const { sql, values } = listStatement({ ...query, limit });
    return pageOfRows({ ...query, limit }, await this.#records.rows(sql, ...values));
  }

  async write(changes: readonly DocumentChange[]): Promise<number> {
    const version = (this.#input += 1);
    const placed = changes.flatMap((change) =>
      changeStatements(change, version).map((statement) => ({ change, statement })),
    );
    const deletions = changes.filter((change) => change.do === "delete").length;
    try {
      await this.#records.write(placed.map(({ statement }) => statement));
    } catch (error) {
      if (!(error instanceof RecordsError) || error.unexpectedAt === null) throw error;
      const change = placed[error.unexpectedAt]?.change;
      throw change === undefined ? error : new DocumentConflict(change.kind, change.key);
    }
    this.#deletionCount += deletions;
    this.#written.notify();
    if (this.#deletionCount > this.#limits.deletionsMax) await this.#forgetIfTaken();
    return version;
  }

  version(): Promise<number> {
    return this.#number(lastVersionSql.replace("AS version", "AS number"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#records[Symbol.asyncDispose]();
  }

  async *changes(sinceVersion: number, signal: AbortSignal): AsyncIterable<ChangeBatch> {
    for (let since = sinceVersion; ;) {
      signal.throwIfAborted();
      // Obtained before the version is read, so that a write in between is not missed.
      const written = this.#written.nextChange();
      const last = await this.version();
      if (last > since) {
        const batch = await this.#batch(since, last);
        since = batch.version;
        yield batch;
        continue;
      }
      await rejectOnAbort(written, signal);
    }
  }

  async #batch(since: number, last: number): Promise<ChangeBatch> {
    const [end] = await this.#records.rows(batchEndSql, since, this.#limits.batchMax - 1);
    const version = end === undefined ? last : Number(end["version"]);
    const rows = await this.#records.rows(changesSql, since, version);
    // Checked after the rows are read, because deletions that were forgotten in between are missing in them.
    if (since < (await this.#number("SELECT forgotten_version AS number FROM document_feed"))) {
      throw new ChangesForgotten(since);
    }
    return { version, changes: rows.map(changedDocument) };
  }

  /**
   * Forgets old deletions. Ignores a rejected write, because the caller's write is already committed; a later write
   * tries again.
   */
  async #forgetIfTaken(): Promise<void> {
    try {
      await this.#forget();
    } catch (error) {
      if (!(error instanceof RecordsError)) throw error;
    }
  }

  /** Forgets the older half of the deletions. */
  async #forget(): Promise<void> {
    const sql = "SELECT version AS number FROM document_gone ORDER BY version DESC LIMIT 1 OFFSET ?";
    const kept = Math.ceil(this.#limits.deletionsMax / 2);
    const [row] = await this.#records.rows(sql, kept);
    if (row === undefined) return;
    const forgotten = Number(row["number"]);
    const statements: readonly Statement[] = [
      { sql: "DELETE FROM document_gone WHERE version <= ?", values: [forgotten] },
      {
        sql: "UPDATE document_feed SET forgotten_version = ? WHERE forgotten_version < ?",
        values: [forgotten, forgotten],
      },
    ];
    await this.#records.write(statements);
    this.#deletionCount = kept;
  }

  async #number(sql: string, ...values: SqlValue[]): Promise<number> {
    const [row] = await this.#records.rows(sql, ...values);
    return Number(row?.["number"] ?? 0);
  }
}
