import { join } from "node:path";
import { makeDirectory, type Clock, type Logger } from "../../base/index.ts";
import { openDirectoryStore, type BucketStore } from "../../blobs/index.ts";
import { hostingMigrations, metricMigrations, MetricRecords, metricRecordsLimits } from "../../hosting/index.ts";
import { MinuteSeries } from "../../metrics/index.ts";
import { lockDirectory } from "../../processes/index.ts";
import { openDocuments, openRecords, recordsDefaults, type Documents } from "../../records/index.ts";
import type { DataDirectories } from "../directories.ts";
import { takeOverMetrics } from "./metrics-database.ts";

const seriesLimits = { seriesMax: 100_000, bytesMax: 512 * 2 ** 20 };

/** What the platform keeps on disk. */
export interface PlatformStorage {
  readonly documents: Documents;
  readonly series: MinuteSeries;
  readonly store: BucketStore;
}

/** Takes the data directory for this process alone and opens what lies there; throws where another platform runs over it. */
export async function openStorage(
  opening: AsyncDisposableStack,
  directories: DataDirectories,
  { log, clock }: { readonly log: Logger; readonly clock: Clock },
): Promise<PlatformStorage> {
  for (const directory of Object.values(directories)) await makeDirectory(directory);
  const lock = lockDirectory(directories.records);
  if (lock === null) {
    throw new Error(`another platform runs over ${directories.root}; stop it, or choose another directory with --data`);
  }
  opening.use(lock);
  const databases = {
    records: join(directories.records, "galatea.db"),
    metrics: join(directories.records, "metrics.db"),
  };
  takeOverMetrics(databases, log);
  const records = opening.use(
    await openRecords({ ...recordsDefaults, path: databases.records, migrations: hostingMigrations, logger: log }),
  );
  // Of so many points no second copy is kept: what a damaged page held is told and lost.
  const metricDatabase = opening.use(
    await openRecords({
      ...recordsDefaults,
      path: databases.metrics,
      migrations: metricMigrations,
      keepsJournal: false,
      logger: log,
    }),
  );
  const store = opening.use(await openDirectoryStore({ folder: directories.objects, logger: log }));
  const series = new MinuteSeries({ clock, ...seriesLimits });
  // Closed after everything that records, before the records.
  opening.use(
    await MetricRecords.open({
      records: metricDatabase,
      series,
      limits: metricRecordsLimits,
      clock,
      logger: log,
    }),
  );
  return { documents: await openDocuments(records), series, store };
}
