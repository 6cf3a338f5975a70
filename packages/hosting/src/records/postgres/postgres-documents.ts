import { randomUUID } from "node:crypto";
import { rejectOnAbort, systemClock, type Clock, type Logger } from "@galatea/base";
import type { ChangeBatch, Document, DocumentChange, DocumentPage, DocumentQuery, Documents } from "../documents.ts";
import type { DatabaseAddress } from "./database-address.ts";
import { DocumentWriter } from "./document-writer.ts";
import { PostgresReader } from "./postgres-reader.ts";
import { postgresMigrations } from "./postgres-tables.ts";

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
  const applicationName = `galatea reader ${holder}`;
  const changed = (signal: AbortSignal) => rejectOnAbort(writer.changed(), signal);
  const reader = new PostgresReader({ address, applicationName, batchMax, changed, clock });
  return new LockedDocuments(holder, writer, reader);
}

class LockedDocuments implements PostgresDocuments {
  readonly holder: string;
  readonly #writer: DocumentWriter;
  readonly #reader: PostgresReader;

  constructor(holder: string, writer: DocumentWriter, reader: PostgresReader) {
    this.holder = holder;
    this.#writer = writer;
    this.#reader = reader;
  }

  get epoch(): number {
    return this.#writer.epoch;
  }

  get lost(): Promise<Error> {
    return this.#writer.lost;
  }

  get(kind: string, key: string): Promise<Document | null> {
    return this.#reader.get(kind, key);
  }

  list(query: DocumentQuery): Promise<DocumentPage> {
    return this.#reader.list(query);
  }

  write(changes: readonly DocumentChange[]): Promise<number> {
    return this.#writer.write(changes);
  }

  version(): Promise<number> {
    return this.#reader.version();
  }

  async isHolder(): Promise<boolean> {
    return (await this.#reader.holder()) === this.holder;
  }

  changes(sinceVersion: number, signal: AbortSignal): AsyncIterable<ChangeBatch> {
    return this.#reader.changes(sinceVersion, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writer[Symbol.asyncDispose]();
    await this.#reader[Symbol.asyncDispose]();
  }
}
