/** One instance: its container through the `ModelHost` port, the contract spoken to it, and its health. */
export { errorText, type ContainerClient, type ContainerReply, type Unconfined } from "./container-client.ts";
export {
  containerEnvironment,
  modelDataUrlOf,
  type InstanceIdentity,
  type IssueCredentials,
  type IssuedCredentials,
} from "./instance-credentials.ts";
export { EndpointInstance, InstanceFailure, instanceLimits, type InstanceLimits } from "./instance.ts";
export {
  ModelDataError,
  type ContainerEnd,
  type HostedContainer,
  type HostedInstance,
  type InstanceAddress,
  type InstanceModels,
  type InstanceOwner,
  type InstanceSpec,
  type InstanceUsage,
  type ModelHost,
} from "./model-host.ts";
