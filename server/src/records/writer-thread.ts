import { DatabaseSync, type StatementSync } from "node:sqlite";
import { parentPort, workerData } from "node:worker_threads";
import type { Migration, Statement, WriteResult } from "./statement.ts";

export interface WriterThreadData {
  readonly path: string;
  readonly migrations: readonly Migration[];
  readonly busyTimeoutMs: number;
}

export type ToWriter =
  | { readonly kind: "write"; readonly transaction: number; readonly statements: readonly Statement[] }
  | { readonly kind: "close" };

export type FromWriter =
  | { readonly kind: "open" }
  | { readonly kind: "failed-to-open"; readonly message: string }
  | { readonly kind: "committed"; readonly results: readonly { transaction: number; results: WriteResult[] }[] }
  | { readonly kind: "refused"; readonly transaction: number; readonly message: string; readonly sqliteCode: number }
  | { readonly kind: "closed" };

/** Prepared statements kept; the writers' texts are few and fixed. */
const preparedMax = 200;

const port = parentPort;
const waiting: { transaction: number; statements: readonly Statement[] }[] = [];
const prepared = new Map<string, StatementSync>();
let committing = false;

function open({ path, migrations, busyTimeoutMs }: WriterThreadData): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
  // FULL: a commit returns after fsync of the log. What is acknowledged survives power loss.
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
  database.exec("CREATE TABLE IF NOT EXISTS applied_migration (id TEXT PRIMARY KEY) STRICT");
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
  }
  return database;
}

/** Everything that arrived while the last commit was written goes into the next one: one fsync for all of it. */
function commitWaiting(database: DatabaseSync): void {
  committing = false;
  const batch = waiting.splice(0);
  if (batch.length === 0) return;
  const committed: { transaction: number; results: WriteResult[] }[] = [];
  try {
    database.exec("BEGIN IMMEDIATE");
    for (const { transaction, statements } of batch) {
      database.exec("SAVEPOINT one");
      try {
        const results = statements.map((statement) => runOne(database, statement));
        database.exec("RELEASE one");
        committed.push({ transaction, results });
      } catch (error) {
        // A full disk rolls the whole transaction back; then there is no savepoint left to return to.
        if (!database.isTransaction) throw error;
        database.exec("ROLLBACK TO one; RELEASE one");
        refuse(transaction, error);
      }
    }
    database.exec("COMMIT");
    port?.postMessage({ kind: "committed", results: committed } satisfies FromWriter, []);
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    for (const { transaction } of batch) refuse(transaction, error);
  }
}

function runOne(database: DatabaseSync, { sql, values }: Statement): WriteResult {
  let statement = prepared.get(sql);
  if (statement === undefined) {
    statement = database.prepare(sql);
    if (prepared.size >= preparedMax) prepared.clear();
    prepared.set(sql, statement);
  }
  return { changes: Number(statement.run(...values).changes) };
}

function refuse(transaction: number, error: unknown): void {
  const { message, errcode } = error as { message?: string; errcode?: number };
  const reply = { kind: "refused", transaction, message: message ?? String(error), sqliteCode: errcode ?? 0 } as const;
  port?.postMessage(reply satisfies FromWriter, []);
}

try {
  const database = open(workerData as WriterThreadData);
  port?.on("message", (message: ToWriter) => {
    if (message.kind === "close") {
      commitWaiting(database);
      database.close();
      port.postMessage({ kind: "closed" } satisfies FromWriter, []);
      port.close();
      return;
    }
    waiting.push(message);
    if (committing) return;
    committing = true;
    setImmediate(commitWaiting, database);
  });
  port?.postMessage({ kind: "open" } satisfies FromWriter, []);
} catch (error) {
  port?.postMessage({ kind: "failed-to-open", message: String(error) } satisfies FromWriter, []);
}
