/** The AWS side of the platform: one gateway for all services, and S3 over an object store. */
export {
  createGateway,
  isLoopbackName,
  refusedRequest,
  type CallContext,
  type DoorRules,
  type Gateway,
  type GatewayLimits,
  type GatewayOptions,
  type GatewayServices,
  type ObjectName,
  type ObjectService,
  type OperationHandlers,
  type RawService,
} from "./wire/index.ts";
export { createS3Service, type S3Options } from "./services/s3/index.ts";
export { createSageMakerOperations } from "./services/sagemaker/index.ts";
export { createRuntimeService, type RuntimeOptions } from "./services/sagemaker-runtime/index.ts";
export { createCloudWatchService, type CloudWatchOptions } from "./services/cloudwatch/index.ts";
export {
  createIamService,
  ensureRole,
  type IamOptions,
  type IdentityStore,
  type PolicyRecord,
  type RoleRecord,
} from "./services/iam/index.ts";
export { createLogsService, type LogsOptions } from "./services/logs/index.ts";
export { createStsService, type StsOptions, type StsService } from "./services/sts/index.ts";
export {
  answerHttpsHosts,
  clientEnvironment,
  createCertificate,
  shellBefore,
  shellChanges,
  shellRestored,
  stsHosts,
  type Certificate,
  type ClientEnvironment,
  type ClientEnvironmentOptions,
  type ClientProxy,
  type HttpsHostsOptions,
  type ShellChange,
} from "./client-environment/index.ts";
