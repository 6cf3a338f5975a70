/**
 * Parses, completes, checks and prints config.pbtxt. Pure functions; the module `repository` reads the files.
 *
 * The order of a load: `parseConfigText` or `parseConfigOverride`, `completeConfig` (defaults, backend from the files), `checkFoundConfig`
 * (errors that no backend can complete), and for each version the backend's own completion (`mergeAutoComplete`), `rejectUnsupported`,
 * `checkConfig`, and `checkEnsembleModels` for ensembles.
 *
 * All errors are InferenceError: INVALID_ARG with Triton's texts, UNSUPPORTED for features that are not implemented.
 */
export type {
  DynamicBatchingConfig,
  EnsembleConfig,
  EnsembleStepConfig,
  InputConfig,
  ModelConfig,
  OutputConfig,
  QueuePolicy,
  VersionPolicy,
  WarmUpInput,
  WarmUpSample,
} from "./model-config.ts";
export { mergeAutoComplete } from "./auto-complete.ts";
export { checkConfig, checkFoundConfig, configProblems } from "./check-config.ts";
export { checkEnsembleModels } from "./check-ensemble-models.ts";
export { completeConfig } from "./complete-config.ts";
export type { CompletionContext } from "./completion-context.ts";
export type { ModelConfigMessage } from "./message.ts";
export { parseConfigOverride } from "./parse-json.ts";
export { configTextBytesMax, parseConfigText, readConfigText } from "./parse-text.ts";
export { placedInstances, type PlacedInstance } from "./placed-instances.ts";
export { printConfigJson, printConfigJsonText } from "./print-json.ts";
export { rejectUnsupported, unsupportedFields } from "./unsupported-features.ts";
