/**
 * The types and rules of SageMaker requests: names, ARNs, images, instance types, environment variables, and the records
 * of models and endpoint configurations. This module performs no I/O.
 */
export { hostingArn, nameKey, parseHostingArn, type HostingResource, type Owner } from "./arns.ts";
export {
  resolveImage,
  unsupportedImageText,
  type BuiltInRuntime,
  type ContainerRuntime,
  type EngineImage,
} from "./image-names.ts";
export { instanceTypeSize, type InstanceBudget } from "./instance-types.ts";
export { variantWeightError } from "./variant-weights.ts";
export { serverlessModelError, serverlessConfigError, serverlessQuotaType, variantBudget } from "./serverless.ts";
export type {
  AsyncInferenceConfig,
  CapacitySize,
  ServerlessConcurrency,
  ContainerDefinition,
  ModelContainers,
  DataCaptureConfig,
  DeploymentConfig,
  EndpointConfigRecord,
  ModelRecord,
  ProductionVariant,
  ServerlessConfig,
  TrafficRouting,
  VariantPlan,
} from "./hosting-records.ts";
export { environmentVariableError } from "./environment-variables.ts";
export { isComponentVariant, placeholderModel } from "./shared-instances.ts";
export { shadowModelError } from "./shadow-variants.ts";
export { parseInvokableEndpoints, isInvokableEndpoint, parseObjectPrefixes } from "./model-permissions.ts";
export { isPlatformsNamespace } from "./platform-namespaces.ts";
export { folderPrefix, isFolderPlaceholder, parseS3Uri } from "./s3-uri.ts";
export {
  resourceAlreadyExists,
  validationError,
  resourceNotFound,
  type HostingResourceNoun,
  endpointInProgress,
  quotaExceeded,
  insufficientNodeMemory,
  instanceTooLarge,
  noNodeWithCapacity,
  type DrainingMemory,
  transformJobAlreadyExists,
  transformJobNotFound,
} from "./hosting-errors.ts";
