/**
 * Durable records. `Documents` is the door for whoever keeps records: versioned texts, written in transactions that say what they expect,
 * listed by range, with a feed of changes; another database can stand behind it. Below it is one SQLite database: writes run in a
 * thread of their own and are acknowledged after fsync, many with one; reads see what is committed. Metrics, which are too many for
 * documents, bring tables and statements of their own. Nobody else stores anything with SQLite. The invocation path never comes here.
 */
export { documentMigrations } from "./document-tables.ts";
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
export { documentLimits, openDocuments, type DocumentLimits } from "./sqlite-documents.ts";
export { restoreDatabase, type Restored } from "./replace-database.ts";
export { copyDatabase } from "./snapshot-files.ts";
export type { SnapshotOptions } from "./snapshots.ts";
export { openRecords, recordsDefaults, type Records, type RecordsOptions } from "./records.ts";
export { RecordsError, type Migration, type SqlValue, type Statement, type WriteResult } from "./statement.ts";
