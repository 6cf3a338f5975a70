import { makeDirectory, type Clock, type Logger } from "@galatea/base";
import { openDirectoryStore, type BucketStore } from "@galatea/hosting/objects";
import { hostingMigrations, metricMigrations, MetricRecords, metricRecordsLimits } from "@galatea/hosting";
import { MinuteSeries } from "@galatea/base/metrics";
import { lockDirectory } from "@galatea/base/processes";
import { openDocuments, openRecords, recordsDefaults, type Documents } from "@galatea/hosting/records";
import { databasePaths, platformDirectories, type DataDirectories } from "../directories.ts";
import { isPlatformsNamespace } from "./platform-namespaces.ts";
import { takeOverMetrics } from "./metrics-database.ts";
import { closeToOthers } from "./private-data.ts";

const seriesLimits = { seriesMax: 100_000, bytesMax: 512 * 2 ** 20 };

const hourMs = 3_600_000;

export interface StorageOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /** Days of which a snapshot of the records is kept; 0: none is made. */
  readonly snapshotDays: number;
}

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
  options: StorageOptions,
): Promise<PlatformStorage> {
  const { log, clock } = options;
  for (const directory of platformDirectories(directories)) await makeDirectory(directory);
  const lock = lockDirectory(directories.records);
  if (lock === null) {
    throw new Error(`another platform runs over ${directories.root}; stop it, or choose another directory with --data`);
  }
  opening.use(lock);
  await closeToOthers(directories, log);
  takeOverMetrics(databasePaths(directories), log);
  const { records, metricDatabase, store } = await openFiles(opening, directories, options);
  const isAnybodys = (namespace: string) => !isPlatformsNamespace(namespace);
  const series = new MinuteSeries({ clock, ...seriesLimits, isAnybodys });
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

/** Side by side: each reads what it holds, the databases in threads of their own. */
async function openFiles(
  opening: AsyncDisposableStack,
  directories: DataDirectories,
  { log: logger, clock, snapshotDays }: StorageOptions,
) {
  const databases = databasePaths(directories);
  const shared = { ...recordsDefaults, logger };
  const snapshots = { folder: directories.snapshots, daysKept: snapshotDays, everyMs: hourMs, clock };
  const [records, metricDatabase, store] = await Promise.allSettled([
    openRecords({ ...shared, path: databases.records, migrations: hostingMigrations, snapshots }),
    openRecords({
      ...shared,
      path: databases.metrics,
      migrations: metricMigrations,
      // Up to half a gigabyte: one copy a day, and only the last one.
      snapshots: { ...snapshots, daysKept: Math.min(1, snapshotDays), everyMs: 24 * hourMs },
    }),
    openDirectoryStore({ folder: directories.objects, logger }),
  ]);
  // All that is open is closed with the rest where one of them is not.
  for (const each of [records, metricDatabase, store]) if (each.status === "fulfilled") opening.use(each.value);
  return { records: opened(records), metricDatabase: opened(metricDatabase), store: opened(store) };
}

function opened<Resource>(outcome: PromiseSettledResult<Resource>): Resource {
  if (outcome.status === "rejected") throw outcome.reason;
  return outcome.value;
}
