import { Pool } from "pg";
import { delay, systemClock, type Clock } from "@galatea/base";
import { changedDocument, changesSql, listStatement, pageOfRows } from "../document-tables.ts";
import {
  ChangesForgotten,
  documentsListedMax,
  type ChangeBatch,
  type Document,
  type DocumentPage,
  type DocumentQuery,
  type DocumentReader,
} from "../documents.ts";
import { RecordsError, type SqlValue } from "../statement.ts";
import type { DatabaseAddress } from "./database-address.ts";
import { DatabaseUnavailable, queryFailure } from "./database-errors.ts";
import { feedEndSql, forgottenSql, versionSql, withNumberedPlaceholders } from "./postgres-tables.ts";
import { clientConfig } from "./server-session.ts";

export interface PostgresReaderOptions {
  readonly address: DatabaseAddress;
  /** Name of the sessions in `pg_stat_activity`. */
  readonly applicationName: string;
  /** Maximum number of changes in a batch. Changes of one write are never split. */
  readonly batchMax: number;
  /** Resolves when documents may have changed. Rejects with the signal's reason. */
  readonly changed: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
}

const readersMax = 4;
const pendingReadsMax = 10_000;
/** Maximum milliseconds that a read waits for an unreachable database. */
const unavailableMsMax = 5000;
const pauseMs = 100;
const feedPauseMs = 1000;
const pollEveryMs = 200;

/** Reads documents through a bounded pool of sessions. Takes no lock, so any number of processes may read. */
export class PostgresReader implements DocumentReader, AsyncDisposable {
  readonly #pool: Pool;
  readonly #options: PostgresReaderOptions;

  constructor(options: PostgresReaderOptions) {
    this.#options = options;
    this.#pool = new Pool({
      ...clientConfig(options.address, options.applicationName),
      max: readersMax,
      allowExitOnIdle: true,
    });
    // The pool removes a reader that ends while it is idle. The next query reports that the database is unreachable.
    this.#pool.on("error", () => {});
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

  version(): Promise<number> {
    return this.#number(versionSql);
  }

  /** Resolves with the id of the process that holds the write lock, or held it last. */
  async holder(): Promise<string> {
    const [row] = await this.#rows("SELECT holder FROM document_feed");
    return String(row?.["holder"]);
  }

  async *changes(sinceVersion: number, signal: AbortSignal): AsyncIterable<ChangeBatch> {
    for (let since = sinceVersion; ;) {
      signal.throwIfAborted();
      const changed = this.#options.changed(signal);
      changed.catch(() => {});
      const batch = await this.#batch(since).catch((error: unknown) => {
        if (error instanceof DatabaseUnavailable) return null;
        throw error;
      });
      if (batch === null) await delay(this.#options.clock, feedPauseMs, signal);
      else if (batch.version === since) await changed;
      else {
        since = batch.version;
        yield batch;
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end();
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
    if (this.#pool.waitingCount >= pendingReadsMax) {
      throw new DatabaseUnavailable(`${pendingReadsMax} reads wait for the database`, null);
    }
    for (const untilNs = clock.monotonicNs() + unavailableMsMax * 1e6; ;) {
      try {
        return (await this.#pool.query<Record<string, SqlValue>>(sql, [...values])).rows;
      } catch (error) {
        if (queryFailure(error) === "refused") throw new RecordsError((error as Error).message, 0);
        if (clock.monotonicNs() >= untilNs) throw new DatabaseUnavailable("the database is not reachable", error);
      }
      await delay(clock, pauseMs, null);
    }
  }
}

/** Opens the documents of a database for reading, and looks for changes five times a second. Connects with the first read. */
export function openPostgresReader(address: DatabaseAddress, clock: Clock = systemClock): PostgresReader {
  const changed = (signal: AbortSignal) => delay(clock, pollEveryMs, signal);
  return new PostgresReader({ address, applicationName: "galatea gateway", batchMax: 500, changed, clock });
}
