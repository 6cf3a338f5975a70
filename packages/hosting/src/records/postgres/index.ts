/**
 * Records in PostgreSQL 14 or newer. It is a separate module, so that a platform with SQLite does not load the client
 * library. One session holds the write lock (an advisory lock) and writes all documents; a bounded pool reads. Metrics have
 * one more session, which writes only while the same platform holds the lock.
 */
export { parseDatabaseUrl, type DatabaseAddress } from "./database-address.ts";
export { openPostgresSource, openPostgresTarget } from "./postgres-copy.ts";
export { openPostgresDocuments, type PostgresDocuments } from "./postgres-documents.ts";
export { openPostgresReader } from "./postgres-reader.ts";
export { openMetricDatabase, openPostgresMetrics } from "./postgres-metrics.ts";
export { WriteLockLost } from "./database-errors.ts";
export { waitForWriterLock, type WriterLockWatchOptions } from "./writer-lock-watch.ts";
