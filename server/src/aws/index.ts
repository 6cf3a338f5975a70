/** The AWS side of the platform: one gateway for all services, and S3 over an object store. */
export {
  createGateway,
  type CallContext,
  type Gateway,
  type GatewayLimits,
  type GatewayOptions,
  type GatewayServices,
  type ObjectService,
  type OperationHandlers,
  type RawService,
} from "./wire/index.ts";
export { createS3Service, type S3Options } from "./services/s3/index.ts";
export { createSageMakerOperations } from "./services/sagemaker/index.ts";
export { createRuntimeService, type RuntimeOptions } from "./services/sagemaker-runtime/index.ts";
