/** The AWS APIs of the platform: one gateway for all services, and the list of services. */
export {
  createGateway,
  createStandbyGateway,
  isLoopbackName,
  probeOf,
  rejectionOf,
  sendResponse,
  type CallContext,
  type HostAndOriginRules,
  type Gateway,
  type ServiceRow,
  checkInput,
} from "./wire/index.ts";
export { isOpenAiUrl, runtimeService } from "./services/sagemaker-runtime/index.ts";
export { awsServices } from "./services/index.ts";
export {
  createAlarmValueReader,
  cloudwatchService,
  openDashboardStore,
  createTopicActions,
} from "./services/cloudwatch/index.ts";
export { GroupFilters, lazyLogQueries, openMetricFilterStore } from "./services/logs/index.ts";
export { autoscalingService } from "./services/application-autoscaling/index.ts";
export { WriterQuotas, s3Service } from "./services/s3/index.ts";
export { ensureRole, openIdentityStore } from "./services/iam/index.ts";
export { StsSessions } from "./services/sts/index.ts";
export {
  attachConnectProxy,
  clientEnvironment,
  previousEnvironment,
  shellChanges,
  changesToRestoreShell,
  stsHostNames,
  type ClientProxy,
  type ShellChange,
} from "./client-environment/index.ts";
