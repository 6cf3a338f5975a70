/**
 * Hosting: models, endpoint configurations, endpoints, and the instances that run for them. `Hosting` is the public
 * interface, with a member for each kind of record: it keeps the records, reconciles endpoints (a transition is
 * recorded before it is reported, and resumed after a restart), starts instances through the `ModelHost` that it is
 * given, and answers invocations. Multi-model endpoints have one agent per instance. Errors are AwsError with the
 * services' own codes and messages. Nothing here reads the environment or knows HTTP servers.
 */
export {
  asyncLimits,
  type AsyncEvent,
  type AsyncLimits,
  type AsyncRequest,
  type AsyncTicket,
  type ResultOutbox,
} from "./async-inference/index.ts";
export { containerModelId, type KeptTree, type ModelArchive, type ModelTrees } from "./model-cache/index.ts";
export {
  hostingArn,
  isFolderMark,
  isInvokableEndpoint,
  isPlatformsNamespace,
  parseS3Uri,
  refusedVariable,
  resolveImage,
  unsupportedImageText,
  type AsyncInferenceConfig,
  type ContainerDefinition,
  type Containers,
  type DataCaptureConfig,
  type DeploymentConfig,
  type EndpointConfigRecord,
  type HostingResource,
  type Owner,
  serverlessRefusal,
  weightRefusal,
  serverlessType,
  type ProductionVariant,
  type ServerlessConfig,
} from "./definitions/index.ts";
export {
  failureReason,
  groupKey,
  isProduction,
  stepOf,
  type EndpointEvent,
  type EndpointRecord,
  type EndpointState,
  type FleetOptions,
  type Generation,
  type GroupSize,
  type VariantGroup,
} from "./endpoints/index.ts";
export type { RequestedComponentSpec, ComponentUpdate } from "./operations/index.ts";
export type { ComponentEvent, ComponentRecord, ComponentSpec } from "./components/index.ts";
export type { EndpointUpdate, RetainedProperty, VariantSize } from "./operations/index.ts";
export type { EndpointDescription } from "./operations/index.ts";
export { Hosting, type HostingOptions } from "./hosting.ts";
export type { TransformEvent, TransformJobRecord, TransformRequest } from "./transforms/index.ts";
export { mirrorLosses } from "./mirrors/index.ts";
export { hostingLimits, type HostingLimits } from "./capacity/index.ts";
export { invalid } from "./definitions/index.ts";
export {
  instanceLimits,
  ModelDataError,
  type ContainerEnd,
  type ContainerSlot,
  type ContainerSpec,
  type HostedContainer,
  type HostedInstance,
  type InstanceAddress,
  type InstanceIdentity,
  type InstanceLimits,
  type ContainerModels,
  type InstanceOwner,
  type KeptInstance,
  type InstanceSpec,
  type GpuUse,
  type InstanceUsage,
  type ModelHost,
} from "./instances/index.ts";
export {
  responseChunks,
  bufferedBytesMax,
  invocationLimits,
  tooLong,
  type InvocationLimits,
  type InvocationReply,
  type InvocationRequest,
} from "./invocations/index.ts";
export {
  createDirectoryLogStreams,
  keepPruned,
  type LogEvent,
  type LogFollower,
  type LogGroup,
  type LogPage,
  type LogReadOptions,
  type LogStream,
  type LogStreams,
} from "./logs/index.ts";
export { type ListingPage, type ListingPosition, type ListQuery, type NumberedStateChange } from "./store/index.ts";
export type { Wait } from "./waits/index.ts";
