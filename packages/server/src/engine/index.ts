/**
 * The deep module: models by name, loaded, scheduled, counted. Protocols see the `Engine` type; `app/` makes one with
 * `createEngine`, giving it backends, catalogs (what lies on disk) and somewhere to count.
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
export { labelsOf, type ModelView } from "./model-view.ts";
export type { EngineMetrics } from "./observers.ts";
/** What any Engine does with a request before it runs, and tells of a model: pure, for engines other than this one. */
export { checkRequest } from "./check-request.ts";
export { modelMetadata } from "./metadata.ts";
export { modelFacts, type ModelFacts } from "./model-facts.ts";
export { ModelChecks } from "./model-checks.ts";
