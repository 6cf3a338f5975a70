/** The suites for implementers of documents and metrics and for what is built on documents, and documents that last as long as the process; a door of their own, because they import the test runner. */
export { documentsContract } from "./documents.contract.ts";
export {
  durableMetricsContract,
  metricStoreContract,
  type DurableMetricsOptions,
  type DurableMetricsSubject,
} from "./metric-store.contract.ts";
export { recordedMovesContract, type MovesRow } from "./recorded-moves.contract.ts";
export { DocumentMemory, MemoryDocuments } from "../memory-documents.ts";
export { UpkeepClock } from "./upkeep-clock.ts";
export { watchFiles } from "./watched-files.ts";
