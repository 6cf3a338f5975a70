import { validationError } from "@galatea/hosting";
import type { RefusedMember } from "../../wire/index.ts";

const no = (value: unknown) => value === false;
const empty = (value: unknown) => Array.isArray(value) && value.length === 0;

export const refusedModelMembers: readonly RefusedMember[] = [
  { path: "EnableNetworkIsolation", harmless: no },
  { path: "VpcConfig" },
];

export const refusedContainerMembers: readonly RefusedMember[] = [
  { path: "ModelPackageName" },
  { path: "InferenceSpecificationName" },
  { path: "AdditionalModelDataSources", harmless: empty },
  { path: "ImageConfig.RepositoryAccessMode", harmless: (mode) => mode === "Platform" },
  { path: "ImageConfig.RepositoryAuthConfig" },
  { path: "ContainerMetricsConfig.MetricsEndpoints", harmless: empty },
  { path: "ModelDataSource.S3DataSource.HubAccessConfig" },
  { path: "ModelDataSource.S3DataSource.ManifestS3Uri" },
  { path: "ModelDataSource.S3DataSource.ETag" },
  { path: "ModelDataSource.S3DataSource.ManifestEtag" },
];

export const refusedConfigMembers: readonly RefusedMember[] = [
  { path: "AsyncInferenceConfig.OutputConfig.KmsKeyId", harmless: (key) => key === "" },
  { path: "ExplainerConfig" },
  { path: "KmsKeyId" },
  { path: "VpcConfig" },
  { path: "EnableNetworkIsolation", harmless: no },
  { path: "MetricsConfig.EnableEnhancedMetrics", harmless: no },
  { path: "MetricsConfig.EnableDetailedObservability", harmless: no },
  { path: "CrossRegionTrafficConfig" },
];

export const refusedCaptureMembers: readonly RefusedMember[] = [{ path: "KmsKeyId", harmless: (key) => key === "" }];

export const refusedVariantMembers: readonly RefusedMember[] = [
  {
    path: "ManagedInstanceScaling.ScaleInPolicy.Strategy",
    harmless: (strategy) => strategy === "IDLE_RELEASE",
  },
  { path: "InstancePools" },
  { path: "AcceleratorType" },
  { path: "CoreDumpConfig" },
  { path: "EnableSSMAccess", harmless: no },
  { path: "CapacityReservationConfig" },
  { path: "AcceleratorPartitionLayouts" },
  { path: "RoutingConfig.PrefixAwareRoutingConfig" },
  {
    path: "RoutingConfig.RoutingStrategy",
    harmless: (strategy) => strategy === "LEAST_OUTSTANDING_REQUESTS" || strategy === "RANDOM",
  },
];

export const refusedSpecMembers: readonly RefusedMember[] = [
  { path: "ComputeResourceRequirements.AcceleratorPartitionType" },
  { path: "Container.ContainerMetricsConfig.MetricsEndpoints", harmless: empty },
];

export const refusedTransformMembers: readonly RefusedMember[] = [
  { path: "DataCaptureConfig" },
  { path: "ExperimentConfig" },
  { path: "TransformOutput.KmsKeyId", harmless: (key) => key === "" },
  { path: "TransformResources.VolumeKmsKeyId", harmless: (key) => key === "" },
  { path: "TransformResources.TransformAmiVersion" },
];

export function notBuilt(what: string): Error {
  return validationError(`${what} is not supported by this platform yet.`);
}
