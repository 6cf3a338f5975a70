/**
 * Contract suites for documents and metrics and for state machines over documents; a module of its own, because they
 * import the test runner.
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
