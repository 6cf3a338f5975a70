/**
 * Records in PostgreSQL 14 or newer; a module of its own, so that a platform over SQLite does not load the client. One
 * session holds the records by an advisory lock and writes all documents; readers are a bounded pool. Metrics have one more
 * session, which writes only while the same platform holds the records.
 */
export { parseDatabaseUrl, type DatabaseAddress } from "./database-address.ts";
export { openPostgresSource, openPostgresTarget } from "./postgres-copy.ts";
export { openPostgresDocuments, type PostgresDocuments } from "./postgres-documents.ts";
export { openMetricDatabase, openPostgresMetrics } from "./postgres-metrics.ts";
export { WriteLockLost } from "./database-errors.ts";
export { waitForWriterLock, type WriterLockWatchOptions } from "./writer-lock-watch.ts";
