import type { Owner } from "./arns.ts";

/** What was asked for, in the service's own member names: Describe answers with it. */
export interface ContainerDefinition {
  readonly ContainerHostname?: string;
  readonly Image?: string;
  readonly Mode?: "SingleModel" | "MultiModel";
  readonly ModelDataUrl?: string;
  readonly ModelDataSource?: {
    readonly S3DataSource?: {
      readonly S3Uri: string;
      readonly S3DataType: "S3Prefix" | "S3Object";
      readonly CompressionType: "None" | "Gzip";
    };
  };
  readonly Environment?: Readonly<Record<string, string>>;
  readonly MultiModelConfig?: { readonly ModelCacheSetting?: "Enabled" | "Disabled" };
  readonly [member: string]: unknown;
}

/** A model has one container at least. */
export type Containers = readonly [ContainerDefinition, ...ContainerDefinition[]];

export interface ModelRecord {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly owner: Owner;
  readonly containers: readonly ContainerDefinition[];
  /** Whether a request passes through all containers, in their order, or goes to the one that it names. */
  readonly executionMode: "Serial" | "Direct";
  /** The members of the request that Describe returns, as they came. */
  readonly request: Readonly<Record<string, unknown>>;
}

/** Of a variant without instances of its own: one is started when a request comes. */
export interface ServerlessConfig {
  readonly MemorySizeInMB: number;
  readonly MaxConcurrency: number;
  readonly ProvisionedConcurrency?: number;
}

/** Of a serverless variant: as many requests at once, and for how many of them it is kept warm. */
export interface Concurrency {
  readonly max: number;
  readonly provisioned: number;
}

export interface ProductionVariant {
  readonly VariantName: string;
  /** Empty for a variant whose instances inference components share. */
  readonly ModelName: string;
  /** Of a serverless variant 1 where it is kept warm, else 0. */
  readonly InitialInstanceCount: number;
  /** Of a serverless variant no type of instances. */
  readonly InstanceType: string;
  readonly ServerlessConfig?: ServerlessConfig;
  readonly InitialVariantWeight: number;
  readonly VolumeSizeInGB?: number;
  readonly ContainerStartupHealthCheckTimeoutInSeconds?: number;
  readonly ModelDataDownloadTimeoutInSeconds?: number;
  readonly ManagedInstanceScaling?: {
    readonly Status?: string;
    readonly MinInstanceCount?: number;
    readonly MaxInstanceCount?: number;
  };
  readonly RoutingConfig?: { readonly RoutingStrategy: string };
  readonly [member: string]: unknown;
}

/** How an endpoint answers requests that wait in its queue, as it was asked for. */
export interface AsyncInferenceConfig {
  readonly OutputConfig: {
    readonly S3OutputPath?: string;
    readonly S3FailurePath?: string;
    readonly KmsKeyId?: string;
    readonly NotificationConfig?: {
      readonly SuccessTopic?: string;
      readonly ErrorTopic?: string;
      readonly IncludeInferenceResponseIn?: readonly string[];
    };
  };
  readonly ClientConfig?: { readonly MaxConcurrentInvocationsPerInstance?: number };
}

/** What is captured of an endpoint's requests, as it was asked for. */
export interface DataCaptureConfig {
  readonly EnableCapture?: boolean;
  readonly InitialSamplingPercentage: number;
  readonly DestinationS3Uri: string;
  readonly CaptureOptions: readonly { readonly CaptureMode: "Input" | "Output" | "InputAndOutput" }[];
  readonly CaptureContentTypeHeader?: {
    readonly CsvContentTypes?: readonly string[];
    readonly JsonContentTypes?: readonly string[];
  };
}

export interface EndpointConfigRecord {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly owner: Owner;
  readonly variants: readonly ProductionVariant[];
  /** Asked copies of what the production variant is asked. Absent where there are none. */
  readonly shadows?: readonly ProductionVariant[];
  /** Absent for endpoints that answer at once. */
  readonly asyncInference?: AsyncInferenceConfig;
  /** Absent where nothing is said of it. */
  readonly dataCapture?: DataCaptureConfig;
  readonly request: Readonly<Record<string, unknown>>;
}

/** What a fleet is built from: copied at creation, because models and configurations may be deleted while it runs. */
export interface VariantPlan {
  readonly variant: ProductionVariant;
  readonly model: ModelRecord;
  /** Asked copies of what its production variant is asked; nobody is given its answers. */
  readonly isShadow?: true;
  /** What the models of each container are expected to take of memory; absent where nobody knew. */
  readonly expectedBytes?: readonly number[];
}

/** Of a fleet: so many instances, or a part of them. */
export interface CapacitySize {
  readonly Type: "INSTANCE_COUNT" | "CAPACITY_PERCENT";
  readonly Value: number;
}

export interface TrafficRouting {
  readonly Type: "ALL_AT_ONCE" | "CANARY" | "LINEAR";
  readonly WaitIntervalInSeconds: number;
  readonly CanarySize?: CapacitySize;
  readonly LinearStepSize?: CapacitySize;
}

/** How an endpoint is updated, as it was asked for. */
export interface DeploymentConfig {
  readonly BlueGreenUpdatePolicy?: {
    readonly TrafficRoutingConfiguration: TrafficRouting;
    readonly TerminationWaitInSeconds?: number;
    readonly MaximumExecutionTimeoutInSeconds?: number;
  };
  readonly RollingUpdatePolicy?: {
    readonly MaximumBatchSize: CapacitySize;
    readonly WaitIntervalInSeconds: number;
    readonly MaximumExecutionTimeoutInSeconds?: number;
    readonly RollbackMaximumBatchSize?: CapacitySize;
  };
  readonly AutoRollbackConfiguration?: { readonly Alarms?: readonly { readonly AlarmName?: string }[] };
}
