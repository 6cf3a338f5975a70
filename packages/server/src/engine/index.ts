/**
 * The engine: loads models, runs their requests and counts them. Protocols use the `Engine` type. The `serve` command creates an engine
 * with `createEngine` from backends, catalogs (the models on disk) and metrics.
 */
export type { Catalog, CatalogModel } from "./catalog.ts";
export { createEngine, type EngineCore } from "./create-engine.ts";
export type {
  DurationStatistics,
  Engine,
  IndexEntry,
  LoadOverride,
  ModelMetadata,
  ModelStatistics,
  ModelTarget,
  NamespaceSource,
  ServedModel,
} from "./engine.ts";
export { outputLabels, type ModelView } from "./model-view.ts";
export type { EngineMetrics } from "./observers.ts";
/** Pure functions that check requests and describe models, shared by every implementation of Engine. */
export { checkRequest } from "./check-request.ts";
export { modelMetadata } from "./metadata.ts";
export { modelFacts, type ModelFacts } from "./model-facts.ts";
export { ModelChecks } from "./model-checks.ts";
