import { invalid } from "../../../hosting/index.ts";

/** A member that would change what runs, or promises protection, and is not built: refused, never accepted and forgotten. */
interface RefusedMember {
  /** Names from the input inwards, joined by dots. */
  readonly path: string;
  /** Whether a value asks for nothing that is not so here. */
  readonly harmless?: (value: unknown) => boolean;
}

const no = (value: unknown) => value === false;
const empty = (value: unknown) => Array.isArray(value) && value.length === 0;

export const refusedModelMembers: readonly RefusedMember[] = [
  { path: "EnableNetworkIsolation", harmless: no },
  { path: "VpcConfig" },
  { path: "InferenceExecutionConfig.Mode", harmless: (mode) => mode === "Serial" },
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
  { path: "MultiModelConfig.ModelCacheSetting", harmless: (setting) => setting === "Enabled" },
];

export const refusedConfigMembers: readonly RefusedMember[] = [
  { path: "ShadowProductionVariants", harmless: empty },
  // Capturing is on where it is not said to be off.
  { path: "DataCaptureConfig", harmless: (config) => (config as { EnableCapture?: boolean }).EnableCapture === false },
  { path: "AsyncInferenceConfig" },
  { path: "ExplainerConfig" },
  { path: "KmsKeyId" },
  { path: "VpcConfig" },
  { path: "EnableNetworkIsolation", harmless: no },
  { path: "MetricsConfig.EnableEnhancedMetrics", harmless: no },
  { path: "MetricsConfig.EnableDetailedObservability", harmless: no },
  { path: "CrossRegionTrafficConfig" },
];

export const refusedVariantMembers: readonly RefusedMember[] = [
  { path: "ServerlessConfig" },
  {
    path: "ManagedInstanceScaling",
    harmless: (scaling) => (scaling as { Status?: string }).Status === "DISABLED",
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

/** An endpoint moves all at once here, and its old instances end when they have answered what they hold. */
export const refusedDeploymentMembers: readonly RefusedMember[] = [
  {
    path: "DeploymentConfig.BlueGreenUpdatePolicy.TrafficRoutingConfiguration.Type",
    harmless: (type) => type === "ALL_AT_ONCE",
  },
  { path: "DeploymentConfig.BlueGreenUpdatePolicy.TrafficRoutingConfiguration.CanarySize" },
  { path: "DeploymentConfig.BlueGreenUpdatePolicy.TrafficRoutingConfiguration.LinearStepSize" },
  { path: "DeploymentConfig.RollingUpdatePolicy" },
  { path: "DeploymentConfig.AutoRollbackConfiguration.Alarms", harmless: empty },
  { path: "RetainAllVariantProperties", harmless: no },
];

/** Throws a ValidationException that names the first member of these that an input has and that is not harmless. */
export function refuseMembers(input: object, rows: readonly RefusedMember[], of = ""): void {
  for (const { path, harmless } of rows) {
    let value: unknown = input;
    for (const name of path.split(".")) {
      value = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
    }
    if (value === undefined || value === null || harmless?.(value) === true) continue;
    throw notBuilt(typeof value === "string" || value === true ? `${path} ${String(value)}${of}` : `${path}${of}`);
  }
}

export function notBuilt(what: string): Error {
  return invalid(`${what} is not supported by this platform yet.`);
}
