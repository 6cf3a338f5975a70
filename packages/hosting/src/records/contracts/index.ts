/**
 * Contract suites for documents, metrics, and state machines that are stored as documents. They are a separate module
 * because they import the test runner.
 */
export { documentsContract } from "./documents.contract.ts";
export {
  durableMetricsContract,
  metricStoreContract,
  type DurableMetricsOptions,
  type DurableMetricsSubject,
} from "./metric-store.contract.ts";
export { recordedTransitionsContract, type RecordedTransition } from "./recorded-moves.contract.ts";
export { DocumentMemory, MemoryDocuments } from "../memory-documents.ts";
export { UpkeepClock } from "./upkeep-clock.ts";
export { onFileChanges } from "./watched-files.ts";
