/** The models of one multi-model container: archives unpacked on the instance's disk, models loaded in the container, requests that wait for them. */
export { modelCacheLimits, type ModelCacheLimits } from "./model-cache-limits.ts";
export type { ModelCacheLease } from "./model-cache-options.ts";
export { ModelCache } from "./model-cache.ts";
export {
  ContainerLostError,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  type LoadReply,
  type ModelCacheObserver,
  type ContainedModel,
  type ModelContainer,
} from "./model-container.ts";
export { ModelsView, type ModelCopy, type ModelsMemory, type ModelState } from "./models-view.ts";
export type { KeptTree, ModelArchive, ModelTrees } from "./model-trees.ts";
export { containerModelId } from "./model-version.ts";
