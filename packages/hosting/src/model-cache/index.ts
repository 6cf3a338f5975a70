/**
 * The model cache of a multi-model container: archives unpacked on the instance's disk, models loaded in the container, and requests that wait for a
 * load.
 */
export { modelCacheLimits, type ModelCacheLimits } from "./model-cache-limits.ts";
export type { ModelCacheLease } from "./model-cache-options.ts";
export { ModelCache } from "./model-cache.ts";
export {
  ContainerEndedError,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  type ModelLoadReply,
  type ModelCacheObserver,
  type ListedModel,
  type ModelContainer,
} from "./model-container.ts";
export { ModelsView, type ModelCopyState, type ModelsMemory, type ModelState } from "./models-view.ts";
export type { AdoptableTree, ModelArchive, UnpackedModels } from "./model-trees.ts";
export { containerModelId } from "./model-version.ts";
