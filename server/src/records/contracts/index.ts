/** The suite for implementers of documents, and one that lasts as long as the process; a door of their own, because they import the test runner. */
export { documentsContract, type DocumentsSubject, type DocumentsSubjectOptions } from "./documents.contract.ts";
export { DocumentMemory, MemoryDocuments } from "../memory-documents.ts";
