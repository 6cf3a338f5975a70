import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { silentLogger } from "@galatea/base";
import { InMemoryMetricStore } from "@galatea/base/metrics";
import {
  durableMetricsContract,
  metricStoreContract,
  type DurableMetricsOptions,
  type DurableMetricsSubject,
} from "./contracts/index.ts";
import { metricMigrations } from "./metric-tables.ts";
import { openRecords, recordsDefaults, type Records } from "./records.ts";
import { openMetrics } from "./sqlite-metrics.ts";
import { RecordsError } from "./statement.ts";
import { StoredMetrics, storedMetricLimits } from "./stored-metrics.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-metrics-"));
after(() => rmSync(root, { recursive: true, force: true }));
let count = 0;
const newPath = () => join(root, `${(count += 1)}.db`);
const bytesMax = 1e8;

metricStoreContract("metrics in memory", async (options) => ({
  metrics: new InMemoryMetricStore({ ...options, bytesMax }),
  async [Symbol.asyncDispose]() {},
}));

metricStoreContract("metrics in SQLite", async (options) => {
  const metrics = await openMetrics({ ...options, bytesMax, path: newPath(), logger: silentLogger });
  return { metrics, [Symbol.asyncDispose]: () => metrics[Symbol.asyncDispose]() };
});

class SqliteSubject implements DurableMetricsSubject {
  readonly #options: DurableMetricsOptions;
  readonly #path = newPath();
  #metrics: StoredMetrics;
  #isKilled = false;

  static async open(options: DurableMetricsOptions): Promise<SqliteSubject> {
    const subject = new SqliteSubject(options);
    await subject.#open();
    return subject;
  }

  private constructor(options: DurableMetricsOptions) {
    this.#options = options;
    this.#metrics = null as unknown as StoredMetrics;
  }

  get metrics(): StoredMetrics {
    return this.#metrics;
  }

  async restart(): Promise<StoredMetrics> {
    await this.#metrics[Symbol.asyncDispose]();
    return await this.#open();
  }

  async kill(): Promise<StoredMetrics> {
    this.#isKilled = true;
    await this.#metrics[Symbol.asyncDispose]();
    this.#isKilled = false;
    return await this.#open();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#metrics[Symbol.asyncDispose]();
  }

  async #open(): Promise<StoredMetrics> {
    const { clock, pointsPerWrite } = this.#options;
    const logger = silentLogger;
    const records = await openRecords({ ...recordsDefaults, path: this.#path, migrations: metricMigrations, logger });
    const series = new InMemoryMetricStore({ ...this.#options, bytesMax });
    const limits = { ...storedMetricLimits, pointsPerWrite };
    this.#metrics = await StoredMetrics.open({ records: this.#guarded(records), series, limits, clock, logger });
    return this.#metrics;
  }

  #guarded(records: Records): Records {
    return {
      write: (statements) => {
        const hasPoints = statements.some(({ sql }) => sql.startsWith("INSERT INTO metric_block"));
        if (this.#isKilled || (hasPoints && !this.#options.mayWrite()))
          return Promise.reject(new RecordsError("database or disk is full", 13));
        return records.write(statements);
      },
      rows: (sql, ...values) => records.rows(sql, ...values),
      [Symbol.asyncDispose]: () => records[Symbol.asyncDispose](),
    };
  }
}

durableMetricsContract("metrics in SQLite", (options) => SqliteSubject.open(options));
