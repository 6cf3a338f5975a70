/**
 * One instance: its containers through the `ModelHost` interface, the client of the container contract, and health
 * checks.
 */
export {
  readErrorText,
  errorTextBytesMax,
  ResponseRejected,
  type ContainerClient,
  type ContainerReply,
  type MissingIsolation,
  type BufferedRequest,
} from "./container-client.ts";
export {
  containerEnvironment,
  modelDataUrl,
  grantedAccess,
  type InstanceCredentials,
  type InstanceIdentity,
  type IssuedCredentials,
  type ModelDataAccess,
} from "./instance-credentials.ts";
export { containerDigest } from "./container-digest.ts";
export type { BufferedReply, BufferedReplyOptions } from "./buffered-reply.ts";
export { InstanceContainer, InstanceFailure, instanceLimits, type InstanceLimits } from "./instance-container.ts";
export {
  ModelDataError,
  ownerKey,
  type InstanceAdoption,
  type ContainerEnd,
  type ContainerSlot,
  type ContainerSpec,
  type HostedContainer,
  type HostedInstance,
  type InstanceAddress,
  type ContainerModels,
  type InstanceOwner,
  type InstanceSpec,
  type GpuUsage,
  type InstanceUsage,
  type AdoptableInstance,
  type ModelHost,
} from "./model-host.ts";
