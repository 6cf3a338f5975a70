import { DatabaseSync, type StatementSync } from "node:sqlite";
import { Worker } from "node:worker_threads";
import type { Logger } from "@galatea/base";
import { RecordsError, type Migration, type SqlValue, type Statement, type WriteResult } from "./statement.ts";
import { Snapshots, type SnapshotOptions } from "./snapshots.ts";
import type { OpenDatabaseOptions } from "./open-database.ts";
import type { WriterReply, WriterRequest } from "./writer-thread.ts";

export interface RecordsOptions {
  /** The database file. SQLite's `-wal` and `-shm` files are next to it. The folder must exist. */
  readonly path: string;
  readonly migrations: readonly Migration[];
  /** Maximum number of uncommitted transactions. Above it, writes are rejected immediately. */
  readonly pendingMax: number;
  /** Maximum milliseconds to wait for another process that has locked the database. */
  readonly busyTimeoutMs: number;
  /** Options of snapshots. Null: no snapshots are made, and a damaged database is replaced by an empty one. */
  readonly snapshots: SnapshotOptions | null;
  /** Logs damage that is found when the database is opened, and what is lost. */
  readonly logger: Logger;
}

export const recordsDefaults = { pendingMax: 10_000, busyTimeoutMs: 5000, snapshots: null } as const;

export interface Records extends AsyncDisposable {
  /**
   * Runs statements in one transaction. Resolves when the transaction is on disk (fsync). Calls are committed in order; several
   * calls share one fsync. If SQLite rejects a statement, rejects with RecordsError and writes nothing.
   */
  write(statements: readonly Statement[]): Promise<readonly WriteResult[]>;
  /**
   * Returns the rows of a query on one committed state. The query runs on the calling thread, so it must limit the number of rows.
   */
  rows(sql: string, ...values: SqlValue[]): Promise<readonly Readonly<Record<string, SqlValue>>[]>;
}

/**
 * Opens a database and applies all missing migrations. A damaged database does not cause a rejection: its file is kept, and the
 * newest undamaged snapshot replaces it.
 */
export async function openRecords(options: RecordsOptions): Promise<Records> {
  const { path, snapshots, logger } = options;
  const writer = new Writer(options);
  await writer.opened;
  try {
    const reader = new DatabaseSync(path, { readOnly: true, timeout: options.busyTimeoutMs });
    const created = snapshots === null || snapshots.daysKept === 0 ? null : new Snapshots(path, snapshots, logger);
    return new SqliteRecords(writer, reader, created);
  } catch (error) {
    await writer.close();
    throw error;
  }
}

class SqliteRecords implements Records {
  readonly #writer: Writer;
  readonly #reader: DatabaseSync;
  readonly #snapshots: Snapshots | null;
  readonly #prepared = new Map<string, StatementSync>();

  constructor(writer: Writer, reader: DatabaseSync, snapshots: Snapshots | null) {
    this.#writer = writer;
    this.#reader = reader;
    this.#snapshots = snapshots;
  }

  async write(statements: readonly Statement[]): Promise<readonly WriteResult[]> {
    const results = await this.#writer.write(statements);
    this.#snapshots?.noteCommit();
    return results;
  }

  async rows(sql: string, ...values: SqlValue[]): Promise<readonly Readonly<Record<string, SqlValue>>[]> {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#reader.prepare(sql);
      if (this.#prepared.size >= 200) this.#prepared.clear();
      this.#prepared.set(sql, statement);
    }
    return statement.all(...values);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Snapshots are closed before the writer, because SQLite cannot truncate the write-ahead log while a snapshot thread reads the
    // database.
    await this.#snapshots?.[Symbol.asyncDispose]();
    await this.#writer.close();
    if (this.#reader.isOpen) this.#reader.close();
  }
}

interface Pending {
  readonly resolve: (results: readonly WriteResult[]) => void;
  readonly reject: (error: Error) => void;
}

class Writer {
  readonly opened: Promise<void>;
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  readonly #pendingMax: number;
  readonly #logger: Logger;
  readonly #ended = Promise.withResolvers<void>();
  #last = 0;
  #failure: Error | null = null;

  constructor(options: RecordsOptions) {
    this.#pendingMax = options.pendingMax;
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    this.#logger = options.logger;
    const { path, migrations, busyTimeoutMs } = options;
    const snapshots =
      options.snapshots === null
        ? null
        : { folder: options.snapshots.folder, nowMs: options.snapshots.clock.epochMs() };
    this.#worker = new Worker(new URL(`./writer-thread.${extension}`, import.meta.url), {
      workerData: { path, migrations, busyTimeoutMs, snapshots } satisfies OpenDatabaseOptions,
    });
    const opened = Promise.withResolvers<void>();
    this.opened = opened.promise;
    this.#worker.on("message", (message: WriterReply) => this.#receive(message, opened));
    this.#worker.on("error", (error) => this.#fail(error, opened));
    this.#worker.on("exit", () => {
      this.#fail(new Error("the records are closed"), opened);
      this.#ended.resolve();
    });
    // Pending writes keep the process alive; an idle writer does not.
    this.opened.then(
      () => this.#worker.unref(),
      () => {},
    );
  }

  write(statements: readonly Statement[]): Promise<readonly WriteResult[]> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#pending.size >= this.#pendingMax) {
      return Promise.reject(new RecordsError(`${this.#pendingMax} writes wait for the disk`, 0));
    }
    const transaction = (this.#last += 1);
    return new Promise((resolve, reject) => {
      if (this.#pending.size === 0) this.#worker.ref();
      this.#pending.set(transaction, { resolve, reject });
      this.#post({ kind: "write", transaction, statements });
    });
  }

  /** Commits all pending writes, and closes the database. */
  async close(): Promise<void> {
    this.#failure ??= new Error("the records are closed");
    this.#worker.ref();
    this.#post({ kind: "close" });
    await this.#ended.promise;
  }

  #post(message: WriterRequest): void {
    this.#worker.postMessage(message, []);
  }

  #receive(message: WriterReply, opened: PromiseWithResolvers<void>): void {
    switch (message.kind) {
      case "open":
        if (message.finding !== null) this.#logger.warning(message.finding.message, message.finding.fields);
        opened.resolve();
        return;
      case "unmarked":
        this.#logger.warning(
          "the commit count of the records could not be written: a loss of this commit would not be noticed",
          {
            error: message.message,
          },
        );
        return;
      case "failed-to-open":
        this.#fail(Object.assign(new Error(message.message), { code: message.code }), opened);
        void this.#worker.terminate();
        return;
      case "committed":
        for (const { transaction, results } of message.results) this.#take(transaction)?.resolve(results);
        return;
      case "refused":
        this.#take(message.transaction)?.reject(
          new RecordsError(message.message, message.sqliteCode, message.unexpectedAt),
        );
        return;
      case "closed":
    }
  }

  #take(transaction: number): Pending | undefined {
    const pending = this.#pending.get(transaction);
    this.#pending.delete(transaction);
    if (this.#pending.size === 0 && this.#failure === null) this.#worker.unref();
    return pending;
  }

  #fail(error: Error, opened: PromiseWithResolvers<void>): void {
    this.#failure ??= error;
    opened.reject(error);
    for (const { reject } of this.#pending.values()) reject(this.#failure);
    this.#pending.clear();
  }
}
