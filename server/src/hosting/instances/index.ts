/** One instance: its container through the `ModelHost` port, the contract spoken to it, its health, and its models' data. */
export { errorText, type ContainerClient, type ContainerReply } from "./container-client.ts";
export {
  containerEnvironment,
  modelDataUrlOf,
  type InstanceIdentity,
  type IssueCredentials,
  type IssuedCredentials,
} from "./instance-credentials.ts";
export { Instance, InstanceFailure, instanceLimits, type InstanceLimits } from "./instance.ts";
export { LeftInstances, collectLeftContents, writeOwner, type InstanceOwner } from "./left-instances.ts";
export { ModelDataError, createModelSource, downloadModelData, modelDataPlace } from "./model-data.ts";
export type {
  HostedInstance,
  InstanceAddress,
  InstanceEnd,
  InstanceSpec,
  InstanceUsage,
  ModelHost,
} from "./model-host.ts";
