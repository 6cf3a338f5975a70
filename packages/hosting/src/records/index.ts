/**
 * Durable records. `Documents` are versioned texts, written in transactions with expectations, listed by range, with a
 * feed of changes. Metrics, which are too many for documents, are stored beside them. Both are SQLite databases: writes
 * run in a thread of their own and are acknowledged after fsync, many with one; reads see committed data. `postgres/` has
 * both in PostgreSQL instead. No other module has SQL. The invocation path writes nothing here.
 */
export {
  ChangesForgotten,
  DocumentConflict,
  type ChangeBatch,
  type Document,
  type DocumentChange,
  type DocumentPosition,
  type Documents,
  type ExpectedVersion,
} from "./documents.ts";
export { readAllDocuments, readAllJson, readJson } from "./json-documents.ts";
export { DocumentMemory, MemoryDocuments } from "./memory-documents.ts";
export { RecordedValues } from "./recorded-values.ts";
export { copyRecords, type CopySource, type CopyTarget } from "./record-copy.ts";
export { copyDatabase } from "./snapshot-files.ts";
export { openSqliteSource, openSqliteTarget } from "./sqlite-copy.ts";
export { openDocuments, restoreDocuments } from "./sqlite-documents.ts";
export { openMetrics } from "./sqlite-metrics.ts";
