import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, statfsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import type { Clock, Logger } from "@galatea/base";
import { isPlatformsNamespace } from "@galatea/hosting";
import { chooseLogBucket, readLogBucket, type ChunkedLogStreamsOptions } from "@galatea/hosting/logs/chunked";
import { hideBuckets, openDirectoryStore, type BucketStore } from "@galatea/hosting/objects";
import type { MetricStore } from "@galatea/base/metrics";
import { openDocuments, openMetrics, type Documents } from "@galatea/hosting/records";
import { databasePaths, type DatabasePaths, type DataDirectories } from "../../data-directory/index.ts";
import { openDataDirectory } from "./own-data-directory.ts";
import { openS3Objects, type ObjectServiceAddress } from "./s3-objects.ts";

const seriesLimits = { seriesMax: 100_000, bytesMax: 512 * 2 ** 20, namesBytesMax: 48 * 2 ** 20 };

const hourMs = 3_600_000;

export interface StorageOptions {
  readonly log: Logger;
  readonly clock: Clock;
  /** Number of days whose snapshots of the records are kept; 0: no snapshots are made. */
  readonly snapshotDays: number;
  /** The URL of the PostgreSQL database with records and metrics; null: SQLite databases in the data directory. */
  readonly records: string | null;
  /** The S3 service that stores objects; null: the data directory stores them. */
  readonly objects: ObjectServiceAddress | null;
}

/** The hold of this process on records that another platform may acquire. */
export interface Leadership {
  /** A number that is higher than those of all platforms that had the records before. */
  readonly epoch: number;
  /** Resolves with false if another platform has acquired the records. Rejects if the database does not respond. */
  isHolder(): Promise<boolean>;
}

/** The platform's stores. */
export interface PlatformStorage {
  readonly documents: Documents;
  /** Resolves when this process may no longer write the records, because another platform has acquired them. */
  readonly recordsLost: Promise<Error>;
  /** Null if no other platform can acquire the records. */
  readonly leadership: Leadership | null;
  readonly series: MetricStore;
  /** The objects, without those of log lines. */
  readonly store: BucketStore;
  /** The store of log lines; null: they are files of the data directory. */
  readonly chunks: Pick<ChunkedLogStreamsOptions, "store" | "bucket"> | null;
}

/**
 * Locks the data directory for this process and opens its stores. Throws if another platform uses it or if a newer
 * release has migrated it.
 */
export async function openStorage(
  opening: AsyncDisposableStack,
  directories: DataDirectories,
  options: StorageOptions,
): Promise<PlatformStorage> {
  await openDataDirectory(opening, directories, {
    log: options.log,
    check: () => (options.records === null ? rejectMovedRecords(directories) : undefined),
  });
  return await openFiles(opening, directories, options);
}

/** The databases of records and metrics, which are opened concurrently. */
interface OpeningDatabases {
  readonly documents: Promise<Documents & AsyncDisposable>;
  /** Also rejects if the documents cannot be opened. */
  readonly metrics: Promise<MetricStore & AsyncDisposable>;
  readonly recordsLost: Promise<Error>;
  readonly leadership: Promise<Leadership> | null;
}

/** Opens the stores concurrently. */
async function openFiles(
  opening: AsyncDisposableStack,
  directories: DataDirectories,
  options: StorageOptions,
): Promise<PlatformStorage> {
  const { log: logger, records, objects } = options;
  const databases =
    records === null
      ? openSqlite(directories, options)
      : openPostgres(records, { paths: databasePaths(directories), options });
  const [documents, metrics, store] = await Promise.allSettled([
    databases.documents,
    databases.metrics,
    objects === null
      ? openDirectoryStore({ folder: directories.objects, processorCount: availableParallelism(), logger })
      : openS3Objects(objects, { directories, logger }),
  ]);
  // If one store fails to open, the others are closed. Metrics must be closed after everything that records metrics.
  for (const each of [documents, metrics, store]) if (each.status === "fulfilled") opening.use(each.value);
  const { recordsLost } = databases;
  const leadership = await databases.leadership;
  const found = { documents: opened(documents), recordsLost, leadership, series: opened(metrics) };
  return { ...found, ...(await separateChunks(found.documents, opened(store), records !== null)) };
}

/** Hides the bucket of log lines from everything except the log streams. */
async function separateChunks(documents: Documents, store: BucketStore, isChunked: boolean) {
  // Records that were copied from a database to SQLite may name a bucket, which stays hidden.
  const bucket = isChunked ? await chooseLogBucket(documents, randomUUID) : await readLogBucket(documents);
  return {
    store: bucket === null ? store : hideBuckets(store, (name) => name === bucket),
    chunks: isChunked && bucket !== null ? { store, bucket } : null,
  };
}

/**
 * Throws if the records were moved to a database. The records in the data directory are then missing or older, and a
 * platform that used them would lose endpoints.
 */
function rejectMovedRecords(directories: DataDirectories): void {
  const { recordsMoved } = databasePaths(directories);
  if (!existsSync(recordsMoved)) return;
  throw new Error(
    `the records of '${directories.root}' are in ${readFileSync(recordsMoved, "utf8")}: start with --records, copy them back with ` +
      `\`galatea records copy\`, or remove '${recordsMoved}' to use what the directory had before`,
  );
}

const metricOptions = ({ log: logger, clock }: StorageOptions) => ({
  ...seriesLimits,
  isWritableByClients: (namespace: string) => !isPlatformsNamespace(namespace),
  clock,
  logger,
});

/** Opens the SQLite databases in the data directory. Each runs in a thread of its own. */
function openSqlite(directories: DataDirectories, options: StorageOptions): OpeningDatabases {
  const { log: logger, clock, snapshotDays } = options;
  const paths = databasePaths(directories);
  const snapshots = { folder: directories.snapshots, daysKept: snapshotDays, everyMs: hourMs, freeBytes, clock };
  return {
    documents: openDocuments({ path: paths.records, snapshots, logger }),
    metrics: openMetrics({
      path: paths.metrics,
      // A copy of the metrics may have half a gigabyte. Therefore one copy is made each day, and only the last one is
      // kept.
      snapshots: { ...snapshots, daysKept: Math.min(1, snapshotDays), everyMs: 24 * hourMs },
      ...metricOptions(options),
    }),
    recordsLost: new Promise<never>(() => {}),
    leadership: null,
  };
}

/** Opens databases in PostgreSQL. Loads the PostgreSQL client, which a platform with SQLite does not need. */
function openPostgres(
  url: string,
  { paths, options }: { readonly paths: DatabasePaths; readonly options: StorageOptions },
): OpeningDatabases {
  const { log: logger, clock } = options;
  const loading = import("@galatea/hosting/records/postgres");
  const documents = loading.then(async ({ openPostgresDocuments, parseDatabaseUrl }) => {
    const address = parseDatabaseUrl(url);
    const found = await openPostgresDocuments({ address, clock, logger });
    await writeFile(paths.recordsMoved, address.shown);
    const unused = paths.records;
    if ((await found.version()) === 0 && existsSync(unused)) {
      logger.warning(
        "the records of this data directory are not used: the database of --records is empty; copy them with `galatea records copy`",
        { unused },
      );
    }
    return found;
  });
  const metrics = Promise.all([loading, documents]).then(([{ openPostgresMetrics, parseDatabaseUrl }, { holder }]) =>
    openPostgresMetrics({ address: parseDatabaseUrl(url), holder, ...metricOptions(options) }),
  );
  // If the documents cannot be opened, `documents` rejects with the error, and this promise stays pending.
  const recordsLost = documents.then(
    ({ lost }) => lost,
    () => new Promise<never>(() => {}),
  );
  return { documents, metrics, recordsLost, leadership: documents };
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

function opened<Resource>(outcome: PromiseSettledResult<Resource>): Resource {
  if (outcome.status === "rejected") throw outcome.reason;
  return outcome.value;
}
