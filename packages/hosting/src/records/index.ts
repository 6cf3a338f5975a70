/**
 * Durable records. `Documents` are versioned texts with transactions, conditional writes, sorted listings and a change
 * feed. Metrics are stored separately, because they are too many for documents. Both use SQLite; `postgres/` has both in
 * PostgreSQL. A writer thread commits many writes with one fsync and acknowledges them afterwards. Reads see committed
 * data. No other module contains SQL, and invocations write nothing here.
 */
export {
  ChangesForgotten,
  DocumentConflict,
  type ChangeBatch,
  type Document,
  type DocumentChange,
  type DocumentPosition,
  type DocumentReader,
  type Documents,
  type ExpectedVersion,
} from "./documents.ts";
export { FollowedDocuments } from "./followed-documents.ts";
export { leaderKind, leaderOf, recordLeader } from "./leader.ts";
export { readAllDocuments, readAllJson, readJson } from "./json-documents.ts";
export { DocumentMemory, MemoryDocuments } from "./memory-documents.ts";
export { RecordedValues } from "./recorded-values.ts";
export { copyRecords, type CopySource, type CopyTarget } from "./record-copy.ts";
export { copyDatabase } from "./snapshot-files.ts";
export { openSqliteSource, openSqliteTarget } from "./sqlite-copy.ts";
export { openDocuments, restoreDocuments } from "./sqlite-documents.ts";
export { openMetrics } from "./sqlite-metrics.ts";
