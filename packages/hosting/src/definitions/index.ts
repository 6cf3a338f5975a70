/**
 * The vocabulary of requests: names, ARNs, images, instance types, variables, and the records that keep them. No IO.
 */
export { hostingArn, nameKey, parseHostingArn, type HostingResource, type Owner } from "./arns.ts";
export { resolveImage, unsupportedImageText, type BuiltInRuntime } from "./image-names.ts";
export { instanceType, type InstanceBudget } from "./instance-types.ts";
export { weightRefusal } from "./variant-weights.ts";
export { serverlessModelRefusal, serverlessRefusal, serverlessType, variantBudget } from "./serverless.ts";
export type {
  AsyncInferenceConfig,
  CapacitySize,
  Concurrency,
  ContainerDefinition,
  Containers,
  DataCaptureConfig,
  DeploymentConfig,
  EndpointConfigRecord,
  ModelRecord,
  ProductionVariant,
  ServerlessConfig,
  TrafficRouting,
  VariantPlan,
} from "./records-of-hosting.ts";
export { refusedVariable } from "./refused-variables.ts";
export { isShared, noModel } from "./shared-instances.ts";
export { shadowedModelRefusal } from "./shadow-variants.ts";
export { invokableEndpoints, isInvokableEndpoint, objectPrefixes } from "./granted-reach.ts";
export { isPlatformsNamespace } from "./platform-namespaces.ts";
export { folderOf, isFolderMark, parseS3Uri } from "./s3-uri.ts";
export {
  alreadyExists,
  invalid,
  notFound,
  type HostingNoun,
  inProgress,
  limitExceeded,
  memoryMissing,
  noNodeLargeEnough,
  noNodeWithCapacity,
  type DrainingMemory,
  jobExists,
  jobNotFound,
} from "./hosting-errors.ts";
