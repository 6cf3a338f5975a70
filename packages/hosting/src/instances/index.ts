/** One instance: its container through the `ModelHost` port, the contract spoken to it, and its health. */
export {
  errorText,
  errorTextBytesMax,
  NotAdmitted,
  type ContainerClient,
  type ContainerReply,
  type Unconfined,
  type WholeRequest,
} from "./container-client.ts";
export {
  containerEnvironment,
  modelDataUrlOf,
  reachOf,
  type InstanceCredentials,
  type InstanceIdentity,
  type IssuedCredentials,
  type ModelDataReach,
} from "./instance-credentials.ts";
export type { WholeReply, WholeReplyOptions } from "./whole-reply.ts";
export { InstanceContainer, InstanceFailure, instanceLimits, type InstanceLimits } from "./instance-container.ts";
export {
  ModelDataError,
  type ContainerEnd,
  type ContainerSlot,
  type ContainerSpec,
  type HostedContainer,
  type HostedInstance,
  type InstanceAddress,
  type ContainerModels,
  type InstanceOwner,
  type InstanceSpec,
  type GpuUse,
  type InstanceUsage,
  type KeptInstance,
  type ModelHost,
} from "./model-host.ts";
