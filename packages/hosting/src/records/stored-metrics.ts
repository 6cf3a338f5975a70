import { setImmediate as nextTurn } from "node:timers/promises";
import { delay, checksummedLine, TaskGroup, parseChecksummedLine, type Clock, type Logger } from "@galatea/base";
import type {
  InMemoryMetricStore,
  Datapoint,
  MetricName,
  MetricStore,
  InMemoryMetricStoreOptions,
  PointsQuery,
  ResolutionMs,
  SampleOptions,
  SeriesChanges,
  SeriesFilter,
  SeriesKey,
  SeriesRecorder,
  StatisticSet,
  StoredPoint,
  StoredSeries,
} from "@galatea/base/metrics";
import { decodeBlock, encodeBlock } from "./metric-blocks.ts";
import type { SqlValue, Statement, WriteResult } from "./statement.ts";

/** Options of metrics that are independent of the database. */
export interface MetricsOptions extends InMemoryMetricStoreOptions {
  /** Default: `storedMetricLimits`. */
  readonly limits?: StoredMetricLimits;
  readonly logger: Logger;
}

/** The database of the metrics. SQL must be valid in SQLite and PostgreSQL; placeholders are SQLite's. */
export interface MetricDatabase extends AsyncDisposable {
  /**
   * Commits the statements in one transaction. If this rejects, they may have been committed nevertheless; statements
   * must be safe to repeat.
   */
  write(statements: readonly Pick<Statement, "sql" | "values">[]): Promise<readonly WriteResult[]>;
  rows(sql: string, ...values: SqlValue[]): Promise<readonly Readonly<Record<string, SqlValue>>[]>;
}

export interface StoredMetricLimits {
  /** Maximum total bytes of all blocks. Above it, the oldest hours are deleted. */
  readonly storedBytesMax: number;
  /** Number of points that are encoded in one event loop tick and written in one commit. */
  readonly pointsPerWrite: number;
}

export const storedMetricLimits: StoredMetricLimits = { storedBytesMax: 512 * 2 ** 20, pointsPerWrite: 1000 };

const minuteMs = 60_000;
/** Milliseconds between the end of a minute and its write, because a timer may fire slightly early. */
const afterMinuteMs = 250;
const blocksPerRead = 64;
const seriesPerRead = 1000;
const blocksPerDelete = 200;
const seriesPerDelete = 1000;
const hourMs = 3_600_000;

interface StoredMetricsOptions {
  readonly records: MetricDatabase;
  readonly series: InMemoryMetricStore;
  readonly limits: StoredMetricLimits;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Metrics in memory and in a database. Opening reads the stored points, each minute is written after its end, and
 * disposal writes all pending points. Points of a failed write are written again with the next one.
 */
export class StoredMetrics implements MetricStore, AsyncDisposable {
  readonly #options: StoredMetricsOptions;
  readonly #upkeep: TaskGroup;
  /** An upper bound of the stored bytes. It is recomputed when it exceeds the limit. */
  #byteCount: number;

  /** Opens stored metrics, which own the records from now on. Resolves when the stored points are loaded. */
  static async open(options: StoredMetricsOptions): Promise<StoredMetrics> {
    const { records, series, logger } = options;
    const stored = await storedSeries(records, logger);
    await series.load({
      series: stored,
      points: storedPoints(records, logger),
      nextNumber: (stored.at(-1)?.number ?? 0) + 1,
    });
    const [total] = await records.rows("SELECT SUM(byte_count) AS bytes FROM metric_block");
    return new StoredMetrics(options, Number(total?.["bytes"] ?? 0));
  }

  private constructor(options: StoredMetricsOptions, byteCount: number) {
    const { clock, logger } = options;
    this.#options = options;
    this.#byteCount = byteCount;
    this.#upkeep = new TaskGroup((error) => logger.error("writing metrics has stopped", { error: String(error) }));
    this.#upkeep.run(async (closing) => {
      for (;;) {
        await delay(clock, minuteMs - (clock.epochMs() % minuteMs) + afterMinuteMs, closing);
        await this.#write(clock.epochMs());
      }
    });
  }

  recorder(key: SeriesKey, resolutionMs?: ResolutionMs): SeriesRecorder {
    return this.#options.series.recorder(key, resolutionMs);
  }

  record(key: SeriesKey, sample: { readonly value: number; readonly count: number }, options: SampleOptions): void {
    this.#options.series.record(key, sample, options);
  }

  recordSet(key: SeriesKey, set: StatisticSet, options: SampleOptions): void {
    this.#options.series.recordSet(key, set, options);
  }

  query(name: MetricName, query: PointsQuery): Promise<readonly Datapoint[]> {
    return this.#options.series.query(name, query);
  }

  list(filter: SeriesFilter): AsyncIterable<readonly MetricName[]> {
    return this.#options.series.list(filter);
  }

  refine(name: MetricName, untilMs: number): void {
    this.#options.series.refine(name, untilMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#upkeep[Symbol.asyncDispose]();
    await this.#write(null);
    await this.#options.records[Symbol.asyncDispose]();
  }

  async #write(openAtMs: number | null): Promise<void> {
    const { series, limits, logger } = this.#options;
    try {
      const expired = await series.takeExpired(() => nextTurn());
      for (const changes of series.takeChanges(openAtMs, limits.pointsPerWrite)) await this.#writeChanges(changes);
      // Merged blocks are deleted only after the points into which they were merged are on disk.
      for (const { periodMs, beforeMs } of expired) await this.#deleteBefore(periodMs, beforeMs);
      if (this.#byteCount > limits.storedBytesMax) await this.#deleteOldest();
    } catch (error) {
      const outcome = openAtMs === null ? "lost" : "kept and written later";
      logger.error(`metrics were not written; they are ${outcome}`, { error: String(error) });
    }
    const points = series.takeDroppedCount();
    if (points > 0) {
      logger.warning(
        "metrics were dropped before they were written: the memory or the number of series is at its limit",
        {
          points,
        },
      );
    }
  }

  async #writeChanges(changes: SeriesChanges): Promise<void> {
    const { records, series } = this.#options;
    const { opened, evicted } = changes;
    const statements: Statement[] = [];
    if (opened.length > 0) {
      statements.push({
        sql: `INSERT INTO metric_series (number, body) VALUES ${opened.map(() => "(?, ?)").join(", ")}
          ON CONFLICT (number) DO UPDATE SET body = excluded.body`,
        values: opened.flatMap((identity) => [identity.number, checksummedLine(JSON.stringify(identity))]),
      });
    }
    for (let first = 0; first < evicted.length; first += seriesPerDelete) {
      const values = evicted.slice(first, first + seriesPerDelete);
      statements.push({
        sql: `DELETE FROM metric_series WHERE number IN (${values.map(() => "?").join(", ")})`,
        values,
      });
    }
    for (const { periodMs, startMs, points } of blocksOf(changes.points, series)) {
      const block = encodeBlock({ periodMs, startMs }, points);
      // Counted before the write, because a failed write may have been committed.
      this.#byteCount += block.byteLength;
      statements.push({
        sql: "INSERT INTO metric_block (period_ms, start_ms, byte_count, points) VALUES (?, ?, ?, ?)",
        values: [periodMs, startMs, block.byteLength, block],
      });
    }
    try {
      await records.write(statements);
    } catch (error) {
      series.putBack(changes);
      throw error;
    }
  }

  /** Deletes expired blocks, a limited number in each commit, because other writes wait for the commit. */
  async #deleteBefore(periodMs: number, beforeMs: number): Promise<void> {
    const sql = `DELETE FROM metric_block WHERE id IN
      (SELECT id FROM metric_block WHERE period_ms = ? AND start_ms < ? LIMIT ${blocksPerDelete})`;
    for (;;) {
      const [result] = await this.#options.records.write([{ sql, values: [periodMs, beforeMs] }]);
      if ((result?.changes ?? 0) < blocksPerDelete) return;
    }
  }

  /** Deletes complete hours, oldest first, until a tenth of the limit is free. */
  async #deleteOldest(): Promise<void> {
    const { records, limits } = this.#options;
    const hours = await records.rows(
      `SELECT start_ms / ${hourMs} AS hour, SUM(byte_count) AS bytes FROM metric_block GROUP BY hour ORDER BY hour`,
    );
    let byteCount = hours.reduce((sum, { bytes }) => sum + Number(bytes), 0);
    let beforeMs = 0;
    if (byteCount > limits.storedBytesMax) {
      for (const { hour, bytes } of hours) {
        if (byteCount <= limits.storedBytesMax * 0.9) break;
        byteCount -= Number(bytes);
        beforeMs = (Number(hour) + 1) * hourMs;
      }
    }
    for (const row of await records.rows("SELECT DISTINCT period_ms FROM metric_block")) {
      await this.#deleteBefore(Number(row["period_ms"]), beforeMs);
    }
    this.#byteCount = byteCount;
  }
}

interface Block {
  readonly periodMs: number;
  readonly startMs: number;
  readonly points: StoredPoint[];
}

/** Groups points by period length and by the time range in which they expire. */
function blocksOf(points: readonly StoredPoint[], series: InMemoryMetricStore): Iterable<Block> {
  const blocks = new Map<string, Block>();
  for (const point of points) {
    const { periodMs } = point;
    const startMs = point.startMs - (point.startMs % series.blockMs(periodMs));
    const id = `${periodMs} ${startMs}`;
    const block = blocks.get(id);
    if (block === undefined) blocks.set(id, { periodMs, startMs, points: [point] });
    else block.points.push(point);
  }
  return blocks.values();
}

async function storedSeries(records: MetricDatabase, logger: Logger): Promise<readonly StoredSeries[]> {
  const sql = `SELECT number, body FROM metric_series WHERE number > ? ORDER BY number LIMIT ${seriesPerRead}`;
  const found: StoredSeries[] = [];
  for (let last = 0; ;) {
    const rows = await records.rows(sql, last);
    for (const { number, body } of rows) {
      last = Number(number);
      try {
        const unsealed = parseChecksummedLine(Buffer.from(String(body)));
        if (unsealed === null) throw new RangeError("its checksum does not match");
        const stored = JSON.parse(unsealed.text) as StoredSeries;
        if (stored.number !== last) throw new RangeError(`it is number ${stored.number}`);
        found.push(stored);
      } catch (error) {
        logger.error("a metric cannot be read and is left out", { number: last, error: String(error) });
      }
    }
    if (rows.length < seriesPerRead) return found;
  }
}

async function* storedPoints(records: MetricDatabase, logger: Logger): AsyncGenerator<readonly StoredPoint[]> {
  const sql = `SELECT id, period_ms, start_ms, points FROM metric_block WHERE id > ? ORDER BY id LIMIT ${blocksPerRead}`;
  for (let id = 0; ;) {
    const rows = await records.rows(sql, id);
    const points: StoredPoint[] = [];
    for (const row of rows) {
      id = Number(row["id"]);
      const location = { periodMs: Number(row["period_ms"]), startMs: Number(row["start_ms"]) };
      try {
        for (const point of decodeBlock(location, row["points"] as Uint8Array)) points.push(point);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        logger.error("a block of metrics cannot be read and is left out", { id, error: String(error) });
      }
    }
    yield points;
    if (rows.length < blocksPerRead) return;
  }
}
