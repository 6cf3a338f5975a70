/**
 * The instance agent of a node: the interface by which hosting starts, invokes and observes instances, and its
 * implementation in this process.
 */
export {
  modelCacheLimits,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  type ModelCopyState,
  type ModelState,
  type ModelsView,
} from "../model-cache/index.ts";
export { readErrorText, errorTextBytesMax, InstanceFailure, ResponseRejected } from "../instances/index.ts";
export { ContainerConnectionLost, ContainerTimeout, RequestNotSent, UnknownInstance } from "./agent-errors.ts";
export type { AgentEvent, InstanceEvent, ListedInstance, LostEvents } from "./agent-events.ts";
export type { AgentContainerSpec, AgentInstanceSpec, ModelCacheSpec, OnStartFailure } from "./agent-spec.ts";
export type {
  AcquiredModel,
  AgentContainer,
  AgentInstance,
  AgentReply,
  AgentRequest,
  AgentState,
  EventReadOptions,
  BufferedAgentRequest,
  InstanceAgent,
  InstanceHost,
  InstanceOpener,
} from "./instance-agent.ts";
export { AgentAdoption } from "./agent-adoption.ts";
export type { RemoteAgent } from "./remote-agent.ts";
export { InstanceView, type ContainerView } from "./instance-view.ts";
export { LocalInstanceAgent } from "./local-agent.ts";
