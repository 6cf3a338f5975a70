/** What keeps many models on one instance: which are on its disk, which are in its container's memory, and who waits for them. */
export { agentLimits, type AgentLimits } from "./agent-limits.ts";
export type { AgentLease } from "./agent-options.ts";
export { ModelAgent } from "./model-agent.ts";
export {
  ContainerLostError,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  type LoadReply,
  type AgentObserver,
  type ContainedModel,
  type ModelContainer,
} from "./model-container.ts";
export { ModelsView, type ModelCopy, type ModelsMemory, type ModelState } from "./models-view.ts";
export { absentAsNull, createArchiveSource } from "./model-source.ts";
export type { KeptTree, ModelArchive, ModelTrees } from "./model-trees.ts";
export { containerModelId } from "./model-version.ts";
