import { Pool } from "pg";
import { InMemoryMetricStore, type MetricStore } from "@galatea/base/metrics";
import type { SqlValue, Statement, WriteResult } from "../statement.ts";
import { StoredMetrics, storedMetricLimits, type MetricDatabase, type MetricsOptions } from "../stored-metrics.ts";
import type { DatabaseAddress } from "./database-address.ts";
import { WriteLockLost } from "./database-errors.ts";
import { clientConfig } from "./server-session.ts";
import { lockMetricsSql, withNumberedPlaceholders, takeMetricsSql } from "./postgres-tables.ts";

export interface PostgresMetricsOptions extends MetricsOptions {
  readonly address: DatabaseAddress;
  /** The holder of this database's documents (`PostgresDocuments.holder`). Only this holder can write metrics. */
  readonly holder: string;
}

/** Milliseconds without traffic after which a transaction is rolled back, so that another platform can write the metrics. */
const silenceMsMax = 3000;

/**
 * Opens the metrics of a database whose documents this process holds. Rejects with WriteLockLost if another platform holds
 * them. Disposal writes all pending metrics. Dispose the metrics before the documents.
 */
export async function openPostgresMetrics({
  address,
  holder,
  limits = storedMetricLimits,
  logger,
  ...options
}: PostgresMetricsOptions): Promise<MetricStore & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const records = opening.use(await openMetricDatabase(address, holder));
  const series = new InMemoryMetricStore(options);
  const metrics = await StoredMetrics.open({ records, series, limits, clock: options.clock, logger });
  opening.move();
  return metrics;
}

/** Opens the tables of metrics for the holder of the documents. */
export async function openMetricDatabase(address: DatabaseAddress, holder: string): Promise<MetricDatabase> {
  const settings = [
    `idle_in_transaction_session_timeout=${silenceMsMax}`,
    "tcp_keepalives_idle=5",
    "tcp_keepalives_interval=2",
  ];
  const sessions = new Pool({ ...clientConfig(address, `galatea metrics ${holder}`, settings), max: 1 });
  // Without listeners, a connection that ends would end the process. The current or the next query reports the error.
  sessions.on("error", () => {});
  sessions.on("connect", (session) => session.on("error", () => {}));
  try {
    if ((await sessions.query(takeMetricsSql, [holder])).rowCount === 0) throw taken(address);
  } catch (error) {
    await sessions.end();
    throw error;
  }
  return new PooledMetrics(sessions, address, holder);
}

const taken = ({ shown }: DatabaseAddress) => new WriteLockLost(`another platform uses the metrics in ${shown}`);

/** The metrics' tables, through one session. It is opened when needed, because metrics are written only once a minute. */
class PooledMetrics implements MetricDatabase {
  readonly #sessions: Pool;
  readonly #address: DatabaseAddress;
  readonly #holder: string;

  constructor(sessions: Pool, address: DatabaseAddress, holder: string) {
    this.#sessions = sessions;
    this.#address = address;
    this.#holder = holder;
  }

  async write(statements: readonly Pick<Statement, "sql" | "values">[]): Promise<readonly WriteResult[]> {
    const session = await this.#sessions.connect();
    try {
      await session.query("BEGIN");
      if ((await session.query(lockMetricsSql, [this.#holder])).rowCount === 0) throw taken(this.#address);
      const results: WriteResult[] = [];
      for (const { sql, values } of statements) {
        const { rowCount } = await session.query(withNumberedPlaceholders(sql), [...values]);
        results.push({ changes: rowCount ?? 0 });
      }
      await session.query("COMMIT");
      session.release();
      return results;
    } catch (error) {
      // Closing the session rolls the transaction back.
      session.release(true);
      throw error;
    }
  }

  async rows(sql: string, ...values: SqlValue[]): Promise<readonly Readonly<Record<string, SqlValue>>[]> {
    return (await this.#sessions.query<Record<string, SqlValue>>(withNumberedPlaceholders(sql), values)).rows;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sessions.end();
  }
}
