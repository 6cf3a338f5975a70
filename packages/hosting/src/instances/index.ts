/** One instance: its container through the `ModelHost` interface, the client of its contract, and its health. */
export {
  errorText,
  errorTextBytesMax,
  NotAdmitted,
  type ContainerClient,
  type ContainerReply,
  type Unconfined,
  type BufferedRequest,
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
export type { BufferedReply, BufferedReplyOptions } from "./buffered-reply.ts";
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
