import type { Owner } from "./arns.ts";

/** The container of the request, in the service's own member names, which Describe returns. */
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

/** The containers of a model; at least one. */
export type Containers = readonly [ContainerDefinition, ...ContainerDefinition[]];

export interface ModelRecord {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly owner: Owner;
  readonly containers: readonly ContainerDefinition[];
  /** Serial: a request passes through all containers in order; Direct: it goes to the container that it names. */
  readonly executionMode: "Serial" | "Direct";
  /** The members of the request that Describe returns, unchanged. */
  readonly request: Readonly<Record<string, unknown>>;
}

/** The settings of a variant without permanent instances: an instance is started when a request comes. */
export interface ServerlessConfig {
  readonly MemorySizeInMB: number;
  readonly MaxConcurrency: number;
  readonly ProvisionedConcurrency?: number;
}

/** The concurrency of a serverless variant: the maximum, and the number that is kept warm. */
export interface Concurrency {
  readonly max: number;
  readonly provisioned: number;
}

export interface ProductionVariant {
  readonly VariantName: string;
  /** Empty for a variant whose instances inference components share. */
  readonly ModelName: string;
  /** For a serverless variant: 1 where it is kept warm, else 0. */
  readonly InitialInstanceCount: number;
  /** Empty for a serverless variant. */
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

/** The settings of an endpoint's request queue and its outputs, as requested. */
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

/** The settings of request capture, as requested. */
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
  /** Variants that receive copies of the production variant's requests. Absent without shadow variants. */
  readonly shadows?: readonly ProductionVariant[];
  /** Absent for endpoints with synchronous invocations. */
  readonly asyncInference?: AsyncInferenceConfig;
  /** Absent where the request did not set it. */
  readonly dataCapture?: DataCaptureConfig;
  readonly request: Readonly<Record<string, unknown>>;
}

/** The source of a fleet, copied at creation, because models and configurations may be deleted while it runs. */
export interface VariantPlan {
  readonly variant: ProductionVariant;
  readonly model: ModelRecord;
  /** Receives copies of its production variant's requests; its responses are discarded. */
  readonly isShadow?: true;
  /** Expected bytes of memory of the models of each container; absent where it is unknown. */
  readonly expectedBytes?: readonly number[];
}

/** A size of a fleet: a number of instances or a percentage. */
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

/** The settings of an endpoint's updates, as requested. */
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
