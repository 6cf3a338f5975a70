/**
 * Records in PostgreSQL 14 or newer; a module of its own, so that a platform over SQLite does not load the client. One
 * session holds the records by an advisory lock and makes all writes; readers are a bounded pool.
 */
export { parseDatabaseUrl, type DatabaseAddress } from "./database-address.ts";
export { openPostgresSource, openPostgresTarget } from "./postgres-copy.ts";
export { openPostgresDocuments, type PostgresDocuments } from "./postgres-documents.ts";
