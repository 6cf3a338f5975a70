/** The AWS APIs of the platform: one gateway for all services, and the list of services. */
export {
  createGateway,
  isLoopbackName,
  refusedRequest,
  type CallContext,
  type HostAndOriginRules,
  type Gateway,
  type ServiceRow,
  checkInput,
} from "./wire/index.ts";
export { isOpenAiUrl } from "./services/sagemaker-runtime/index.ts";
export { awsServices } from "./services/index.ts";
export { alarmValues, cloudwatchService, recordedDashboards, topicActions } from "./services/cloudwatch/index.ts";
export { GroupFilters, lazyLogQueries, recordedMetricFilters } from "./services/logs/index.ts";
export { autoscalingService } from "./services/application-autoscaling/index.ts";
export { ObjectWriters, s3Service } from "./services/s3/index.ts";
export { ensureRole, recordedIdentities } from "./services/iam/index.ts";
export { StsSessions } from "./services/sts/index.ts";
export {
  answerHttpsHosts,
  clientEnvironment,
  shellBefore,
  shellChanges,
  shellRestored,
  stsHosts,
  type ClientProxy,
  type ShellChange,
} from "./client-environment/index.ts";
