/**
 * Model repositories on disk: their models, the versions to serve, the steps of ensembles, the model of an archive. `DirectoryCatalog`
 * reads the disk at every call and is compatible with the engine's `Catalog`. It owns the directories of `file:` overrides until it is
 * disposed.
 *
 * All errors are InferenceError with Triton's texts.
 */
export { findArchiveModel } from "./archive-model.ts";
export { DirectoryCatalog } from "./directory-catalog.ts";
export {
  circularDependencyText,
  noVersionErrorText,
  pollErrorText,
  missingVersionText,
  stepNotLoadedText,
  unavailableStepsText,
  versionFailedText,
} from "./failure-texts.ts";
export { composingModels, type FoundModel } from "./model-files.ts";
export { checkRepositoryPath } from "./check-repository-path.ts";
export {
  validateRepository,
  type BackendCheck,
  type CheckedByBackend,
  type VersionProblem,
} from "./validate-repository.ts";
export { chooseVersions, ignoredDirectoryWarning } from "./version-policy.ts";
