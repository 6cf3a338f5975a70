import { randomUUID } from "node:crypto";
import { Pool } from "pg";
import { delay, rejectOnAbort, systemClock, type Clock, type Logger } from "@galatea/base";
import { changedDocument, changesSql, listStatement, pageOfRows } from "../document-tables.ts";
import {
  ChangesForgotten,
  documentsListedMax,
  type ChangeBatch,
  type Document,
  type DocumentChange,
  type DocumentPage,
  type DocumentQuery,
  type Documents,
} from "../documents.ts";
import { RecordsError, type SqlValue } from "../statement.ts";
import type { DatabaseAddress } from "./database-address.ts";
import { DatabaseUnavailable, queryFailure } from "./database-errors.ts";
import { DocumentWriter } from "./document-writer.ts";
import { clientConfig } from "./server-session.ts";
import {
  feedEndSql,
  forgottenSql,
  withNumberedPlaceholders,
  postgresMigrations,
  versionSql,
} from "./postgres-tables.ts";

export interface PostgresDocumentsOptions {
  readonly address: DatabaseAddress;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Number of deletions that are kept for readers of changes. Above it, the older half is forgotten. */
  readonly deletionsMax?: number;
  /** Maximum number of changes in a batch. Changes of one write are never split. */
  readonly batchMax?: number;
}

/** Documents in PostgreSQL. Only this process writes them. */
export interface PostgresDocuments extends Documents, AsyncDisposable {
  /** A random id of this process as the holder of the write lock. */
  readonly holder: string;
  /** A number that is higher than those of all earlier holders of the write lock. */
  readonly epoch: number;
  /** Resolves with false if another process has acquired the write lock. Rejects with DatabaseUnavailable. */
  isHolder(): Promise<boolean>;
  /** Resolves with the reason when this process must not write any more. The documents stay readable. */
  readonly lost: Promise<Error>;
}

const readersMax = 4;
const pendingReadsMax = 10_000;
/** Maximum milliseconds that a read waits for an unreachable database. */
const unavailableMsMax = 5000;
const pauseMs = 100;
const feedPauseMs = 1000;

/**
 * Opens the documents of a database, acquires the write lock, and creates missing tables. A second platform is rejected
 * until disposal, or until this platform has been silent for 10 s.
 */
export async function openPostgresDocuments({
  address,
  logger,
  clock = systemClock,
  deletionsMax = 20_000,
  batchMax = 500,
}: PostgresDocumentsOptions): Promise<PostgresDocuments> {
  const holder = randomUUID();
  const options = { address, migrations: postgresMigrations, holder, clock, logger, deletionsMax };
  const writer = await DocumentWriter.open(options);
  const readers = new Pool({
    ...clientConfig(address, `galatea reader ${holder}`),
    max: readersMax,
    allowExitOnIdle: true,
  });
  // The pool removes a reader that ends while it is idle. The writer logs that the database is unreachable.
  readers.on("error", () => {});
  return new PooledDocuments(writer, readers, { holder, clock, batchMax });
}

interface PooledDocumentsOptions {
  readonly holder: string;
  readonly clock: Clock;
  readonly batchMax: number;
}

class PooledDocuments implements PostgresDocuments {
  readonly #writer: DocumentWriter;
  readonly #readers: Pool;
  readonly #options: PooledDocumentsOptions;

  constructor(writer: DocumentWriter, readers: Pool, options: PooledDocumentsOptions) {
    this.#writer = writer;
    this.#readers = readers;
    this.#options = options;
  }

  get holder(): string {
    return this.#options.holder;
  }

  get epoch(): number {
    return this.#writer.epoch;
  }

  get lost(): Promise<Error> {
    return this.#writer.lost;
  }

  async get(kind: string, key: string): Promise<Document | null> {
    const [row] = await this.#rows("SELECT version, body FROM document WHERE kind = $1 AND key = $2", kind, key);
    return row === undefined ? null : { kind, key, version: Number(row["version"]), body: String(row["body"]) };
  }

  async list(query: DocumentQuery): Promise<DocumentPage> {
    const limit = Math.min(query.limit, documentsListedMax);
    const { sql, values } = listStatement({ ...query, limit });
    return pageOfRows({ ...query, limit }, await this.#rows(withNumberedPlaceholders(sql), ...values));
  }

  write(changes: readonly DocumentChange[]): Promise<number> {
    return this.#writer.write(changes);
  }

  version(): Promise<number> {
    return this.#number(versionSql);
  }

  async isHolder(): Promise<boolean> {
    const [row] = await this.#rows("SELECT holder FROM document_feed");
    return row?.["holder"] === this.holder;
  }

  async *changes(sinceVersion: number, signal: AbortSignal): AsyncIterable<ChangeBatch> {
    for (let since = sinceVersion; ;) {
      signal.throwIfAborted();
      const changed = this.#writer.changed();
      const batch = await this.#batch(since).catch((error: unknown) => {
        if (error instanceof DatabaseUnavailable) return null;
        throw error;
      });
      if (batch === null) await delay(this.#options.clock, feedPauseMs, signal);
      else if (batch.version === since) await rejectOnAbort(changed, signal);
      else {
        since = batch.version;
        yield batch;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer[Symbol.asyncDispose]();
    await this.#readers.end();
  }

  async #batch(since: number): Promise<ChangeBatch> {
    const [end] = await this.#rows(feedEndSql, since, this.#options.batchMax - 1);
    const version = Math.max(since, Number(end?.["version"]));
    const rows = version === since ? [] : await this.#rows(withNumberedPlaceholders(changesSql), since, version);
    // Checked after the rows are read, because deletions that were forgotten in between are missing in them.
    if (since < (await this.#number(forgottenSql))) throw new ChangesForgotten(since);
    return { version, changes: rows.map(changedDocument) };
  }

  async #number(sql: string): Promise<number> {
    const [row] = await this.#rows(sql);
    return Number(row?.["number"]);
  }

  /** Runs a query. While the database is unreachable, retries on other connections for a bounded time. */
  async #rows(sql: string, ...values: readonly SqlValue[]): Promise<readonly Readonly<Record<string, SqlValue>>[]> {
    const { clock } = this.#options;
    if (this.#readers.waitingCount >= pendingReadsMax) {
      throw new DatabaseUnavailable(`${pendingReadsMax} reads wait for the database`, null);
    }
    for (const untilNs = clock.monotonicNs() + unavailableMsMax * 1e6; ;) {
      try {
        return (await this.#readers.query<Record<string, SqlValue>>(sql, [...values])).rows;
      } catch (error) {
        if (queryFailure(error) === "refused") throw new RecordsError((error as Error).message, 0);
        if (clock.monotonicNs() >= untilNs) throw new DatabaseUnavailable("the database is not reachable", error);
      }
      await delay(clock, pauseMs, null);
    }
  }
}
