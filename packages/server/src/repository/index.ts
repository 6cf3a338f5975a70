/**
 * Model repositories on disk: what lies there, which versions to serve, what an ensemble needs, which model an archive means.
 *
 * `DirectoryCatalog` reads the disk at every call and has the shape of the engine's `Catalog`. It owns the directories that `file:`
 * overrides are written to until it is disposed. All refusals are InferenceError with Triton's texts.
 */
export { findArchiveModel } from "./archive-model.ts";
export { circularText, requiredVersionText } from "./dependency-order.ts";
export { DirectoryCatalog } from "./directory-catalog.ts";
export { composingModels, type FoundModel } from "./model-files.ts";
export { refusedRepository } from "./refused-repository.ts";
export { validateRepository, type BackendCheck, type CheckedByBackend } from "./validate-repository.ts";
export { chooseVersions, ignoredVersion } from "./version-policy.ts";
