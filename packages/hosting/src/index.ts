/**
 * Hosting: models, endpoint configurations, endpoints, and the instances that run for them. The class `Hosting` is the
 * public interface, with a member for each kind of record. It stores the records, reconciles endpoints (a transition is
 * recorded before callers see it, and resumed after a restart), starts instances through a `ModelHost`, and answers
 * invocations. Errors are AwsError with SageMaker's codes and messages. This package neither reads environment variables
 * nor opens an HTTP server for callers.
 */
export {
  asyncLimits,
  type AsyncEvent,
  type AsyncLimits,
  type AsyncRequest,
  type AsyncReceipt,
  type ResultOutbox,
} from "./async-inference/index.ts";
export {
  hostingArn,
  isInvokableEndpoint,
  isPlatformsNamespace,
  parseS3Uri,
  environmentVariableError,
  resolveImage,
  unsupportedImageText,
  type AsyncInferenceConfig,
  type ContainerDefinition,
  type ModelContainers,
  type DataCaptureConfig,
  type DeploymentConfig,
  type EndpointConfigRecord,
  type HostingResource,
  type Owner,
  serverlessConfigError,
  variantWeightError,
  serverlessQuotaType,
  type ProductionVariant,
  type ServerlessConfig,
} from "./definitions/index.ts";
export {
  failureReason,
  groupKey,
  isProductionGroup,
  currentStep,
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
export type { EndpointUpdate, RetainedProperty, VariantSizeChange } from "./operations/index.ts";
export type { EndpointDescription } from "./operations/index.ts";
export { Hosting, type HostingOptions } from "./hosting.ts";
export type { TransformEvent, TransformJobRecord, TransformRequest } from "./transforms/index.ts";
export { mirrorDropReasons } from "./mirrors/index.ts";
export { hostingLimits, type HostingLimits } from "./capacity/index.ts";
export { validationError } from "./definitions/index.ts";
export {
  instanceLimits,
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
  type AdoptableInstance,
  type InstanceSpec,
  type GpuUsage,
  type InstanceUsage,
  type ModelHost,
} from "./instances/index.ts";
export {
  responseChunks,
  bufferedBytesMax,
  invocationLimits,
  payloadTooLarge,
  type InvocationLimits,
  type InvocationReply,
  type InvocationRequest,
} from "./invocations/index.ts";
export {
  createDirectoryLogStreams,
  pruneLogsPeriodically,
  type LogEvent,
  type LogFollower,
  type LogGroup,
  type LogPage,
  type LogReadOptions,
  type LogStream,
  type LogStreams,
} from "./logs/index.ts";
export { type ListingPage, type ListingPosition, type ListQuery, type NumberedStateChange } from "./store/index.ts";
export type { WaitLimits } from "./waits/index.ts";
