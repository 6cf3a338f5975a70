import { validationError } from "@galatea/hosting";
import type { UnsupportedMember } from "../../wire/index.ts";

const no = (value: unknown) => value === false;
const empty = (value: unknown) => Array.isArray(value) && value.length === 0;

export const unsupportedModelMembers: readonly UnsupportedMember[] = [
  { path: "EnableNetworkIsolation", harmless: no },
  { path: "VpcConfig" },
];

export const unsupportedContainerMembers: readonly UnsupportedMember[] = [
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

export const unsupportedConfigMembers: readonly UnsupportedMember[] = [
  { path: "AsyncInferenceConfig.OutputConfig.KmsKeyId", harmless: (key) => key === "" },
  { path: "ExplainerConfig" },
  { path: "KmsKeyId" },
  { path: "VpcConfig" },
  { path: "EnableNetworkIsolation", harmless: no },
  { path: "MetricsConfig.EnableEnhancedMetrics", harmless: no },
  { path: "MetricsConfig.EnableDetailedObservability", harmless: no },
  { path: "CrossRegionTrafficConfig" },
];

export const unsupportedCaptureMembers: readonly UnsupportedMember[] = [
  { path: "KmsKeyId", harmless: (key) => key === "" },
];

export const unsupportedVariantMembers: readonly UnsupportedMember[] = [
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

export const unsupportedSpecMembers: readonly UnsupportedMember[] = [
  { path: "ComputeResourceRequirements.AcceleratorPartitionType" },
  { path: "Container.ContainerMetricsConfig.MetricsEndpoints", harmless: empty },
];

export const unsupportedTransformMembers: readonly UnsupportedMember[] = [
  { path: "DataCaptureConfig" },
  { path: "ExperimentConfig" },
  { path: "TransformOutput.KmsKeyId", harmless: (key) => key === "" },
  { path: "TransformResources.VolumeKmsKeyId", harmless: (key) => key === "" },
  { path: "TransformResources.TransformAmiVersion" },
];

export function notSupported(what: string): Error {
  return validationError(`${what} is not supported by this platform yet.`);
}
