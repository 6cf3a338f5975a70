/** The suites for implementers of documents and for what is built on them, and documents that last as long as the process; a door of their own, because they import the test runner. */
export { documentsContract, type DocumentsSubject, type DocumentsSubjectOptions } from "./documents.contract.ts";
export { recordedMovesContract, type MovesRow, type RecordedMachine } from "./recorded-moves.contract.ts";
export { DocumentMemory, MemoryDocuments } from "../memory-documents.ts";
export { watchFiles } from "./watched-files.ts";
