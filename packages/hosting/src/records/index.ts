/**
 * Durable records. `Documents` are versioned texts, written in transactions that say what they expect, listed by range, with a feed of
 * changes. Metrics, which are too many for documents, are kept beside them. Both lie in SQLite databases: writes run in a thread of their
 * own and are acknowledged after fsync, many with one; reads see what is committed. No other module has SQL. The invocation path writes
 * nothing here.
 */
export {
  ChangesForgotten,
  DocumentConflict,
  type ChangeBatch,
  type ChangedDocument,
  type Document,
  type DocumentChange,
  type DocumentPage,
  type DocumentPosition,
  type DocumentQuery,
  type Documents,
  type Expectation,
  type ListedDocument,
} from "./documents.ts";
export { allDocuments, allJson, readJson, type JsonDocument } from "./json-documents.ts";
export { DocumentMemory, MemoryDocuments, type MemoryDocumentsOptions } from "./memory-documents.ts";
export { RecordedValues } from "./recorded-values.ts";
export { takeOverMetrics } from "./metric-takeover.ts";
export type { Restored } from "./replace-database.ts";
export { copyDatabase } from "./snapshot-files.ts";
export type { SnapshotOptions } from "./snapshots.ts";
export { openDocuments, restoreDocuments, type DocumentsOptions } from "./sqlite-documents.ts";
export { openMetrics, type MetricsOptions, type StoredMetricLimits } from "./sqlite-metrics.ts";
