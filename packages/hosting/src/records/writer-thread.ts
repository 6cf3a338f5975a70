import { parentPort, workerData } from "node:worker_threads";
import { openDatabase, type DamageReport, type OpenDatabase, type OpenDatabaseOptions } from "./open-database.ts";
import { diskErrorCode, type Statement, type WriteResult } from "./statement.ts";
import { commitCount, statementRunner } from "./tables.ts";

export type WriterRequest =
  | { readonly kind: "write"; readonly transaction: number; readonly statements: readonly Statement[] }
  | { readonly kind: "close" };

export type WriterReply =
  | { readonly kind: "open"; readonly finding: DamageReport | null }
  | { readonly kind: "unmarked"; readonly message: string }
  | { readonly kind: "failed-to-open"; readonly message: string; readonly code: string | null }
  | { readonly kind: "committed"; readonly results: readonly { transaction: number; results: WriteResult[] }[] }
  | {
      readonly kind: "refused";
      readonly transaction: number;
      readonly message: string;
      readonly sqliteCode: number;
      readonly unexpectedAt: number | null;
    }
  | { readonly kind: "closed" };

const port = parentPort;
const waiting: { transaction: number; statements: readonly Statement[] }[] = [];
let committing = false;

interface Writing {
  readonly opened: OpenDatabase;
  readonly run: ReturnType<typeof statementRunner>;
}

/** Commits all transactions that arrived during the last commit, with one fsync. */
function commitWaiting({ opened, run }: Writing): void {
  const { database } = opened;
  committing = false;
  const batch = waiting.splice(0);
  if (batch.length === 0) return;
  const committed: { transaction: number; results: WriteResult[] }[] = [];
  try {
    database.exec("BEGIN IMMEDIATE");
    for (const { transaction, statements } of batch) {
      database.exec("SAVEPOINT one");
      try {
        const results = statements.map((statement, index) => runExpected(run, statement, index));
        database.exec("RELEASE one");
        committed.push({ transaction, results });
      } catch (error) {
        // A full disk rolls back the whole transaction; the savepoint no longer exists then.
        if (!database.isTransaction) throw error;
        database.exec("ROLLBACK TO one; RELEASE one");
        refuse(transaction, error);
      }
    }
    if (committed.length > 0) run({ sql: "UPDATE commit_count SET count = count + 1", values: [] });
    database.exec("COMMIT");
    if (committed.length > 0) markCommit(opened);
    port?.postMessage({ kind: "committed", results: committed } satisfies WriterReply, []);
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    for (const { transaction } of batch) refuse(transaction, error);
  }
}

/** Writes the commit mark. A failure is only reported, because an old mark is merely too low. */
function markCommit({ database, mark }: OpenDatabase): void {
  try {
    mark.write(commitCount(database));
  } catch (error) {
    port?.postMessage({ kind: "unmarked", message: String(error) } satisfies WriterReply, []);
  }
}

/**
 * The error of a statement that changed an unexpected number of rows. `at`: index of the statement in its transaction.
 */
class UnexpectedChanges extends Error {
  readonly at: number;

  constructor({ sql, changes }: Statement, at: number, found: number) {
    super(`${found} rows instead of ${changes} were changed by: ${sql}`);
    this.at = at;
  }
}

function runExpected(run: Writing["run"], statement: Statement, index: number): WriteResult {
  const changes = Number(run(statement).changes);
  if (statement.changes === undefined || statement.changes === changes) return { changes };
  throw new UnexpectedChanges(statement, index, changes);
}

function refuse(transaction: number, error: unknown): void {
  const { message, errcode } = error as { message?: string; errcode?: number };
  const reply: WriterReply = {
    kind: "refused",
    transaction,
    message: message ?? String(error),
    sqliteCode: errcode ?? 0,
    unexpectedAt: error instanceof UnexpectedChanges ? error.at : null,
  };
  port?.postMessage(reply, []);
}

function close({ database, mark }: OpenDatabase): void {
  // SQLite does not truncate the log on close if other connections are open.
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
  mark[Symbol.dispose]();
}

try {
  const opened = openDatabase(workerData as OpenDatabaseOptions);
  const writing: Writing = { opened, run: statementRunner(opened.database) };
  port?.on("message", (message: WriterRequest) => {
    if (message.kind === "close") {
      commitWaiting(writing);
      close(opened);
      port.postMessage({ kind: "closed" } satisfies WriterReply, []);
      port.close();
      return;
    }
    waiting.push(message);
    if (committing) return;
    committing = true;
    setImmediate(commitWaiting, writing);
  });
  port?.postMessage({ kind: "open", finding: opened.finding } satisfies WriterReply, []);
} catch (error) {
  const { errcode = 0, code = null } = error as { errcode?: number; code?: string };
  const reported = diskErrorCode(errcode) ?? code;
  port?.postMessage(
    { kind: "failed-to-open", message: (error as Error).message, code: reported } satisfies WriterReply,
    [],
  );
}
