import { InMemoryMetricStore, type MetricStore } from "@galatea/base/metrics";
import { metricMigrations } from "./metric-tables.ts";
import { openRecords, recordsDefaults } from "./records.ts";
import type { SnapshotOptions } from "./snapshots.ts";
import { StoredMetrics, storedMetricLimits, type MetricsOptions } from "./stored-metrics.ts";

export interface SqliteMetricsOptions extends MetricsOptions {
  /** The database file; the folder must exist. */
  readonly path: string;
  /** Options of snapshots. Null (the default): no snapshots are made. */
  readonly snapshots?: SnapshotOptions | null;
}

/** Opens the metrics of a database file. Disposal writes all pending metrics and closes the file. */
export async function openMetrics({
  path,
  snapshots = null,
  limits = storedMetricLimits,
  logger,
  ...options
}: SqliteMetricsOptions): Promise<MetricStore & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const records = opening.use(
    await openRecords({ ...recordsDefaults, path, migrations: metricMigrations, snapshots, logger }),
  );
  const series = new InMemoryMetricStore(options);
  const metrics = await StoredMetrics.open({ records, series, limits, clock: options.clock, logger });
  opening.move();
  return metrics;
}
