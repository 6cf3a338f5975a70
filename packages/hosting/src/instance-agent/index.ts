/** The instances of one node: what hosting puts, invokes and sees there, and the agent that runs them in this process. */
export {
  agentLimits,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  type ModelCopy,
  type ModelState,
  type ModelsView,
} from "../agent/index.ts";
export { errorText, errorTextBytesMax, InstanceFailure, NotAdmitted } from "../instances/index.ts";
export { ContainerGone, NotBegun } from "./agent-errors.ts";
export type { InstanceEvent } from "./agent-events.ts";
export type { AgentContainerSpec, AgentInstanceSpec, ModelCacheSpec } from "./agent-spec.ts";
export type { AcquiredModel, AgentContainer, AgentInstance, AgentReply, InstanceAgent } from "./instance-agent.ts";
export type { ContainerView } from "./instance-view.ts";
export { LocalInstanceAgent } from "./local-agent.ts";
