import type { Owner } from "./arns.ts";

/** A ContainerDefinition of a CreateModel request, with SageMaker's member names. DescribeModel returns it unchanged. */
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

/** The containers of a model: at least one. */
export type ModelContainers = readonly [ContainerDefinition, ...ContainerDefinition[]];

export interface ModelRecord {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly owner: Owner;
  readonly containers: readonly ContainerDefinition[];
  /** Serial: a request passes through all containers in order. Direct: a request goes to the container that it names. */
  readonly executionMode: "Serial" | "Direct";
  /** Members of the CreateModel request that DescribeModel returns unchanged. */
  readonly request: Readonly<Record<string, unknown>>;
}

/** SageMaker's ServerlessConfig: a variant whose instance is started on demand. */
export interface ServerlessConfig {
  readonly MemorySizeInMB: number;
  readonly MaxConcurrency: number;
  readonly ProvisionedConcurrency?: number;
}

/** The concurrency of a serverless variant: the maximum number of concurrent requests, and the provisioned number. */
export interface ServerlessConcurrency {
  readonly max: number;
  readonly provisioned: number;
}

/** SageMaker's ProductionVariant, with its member names. */
export interface ProductionVariant {
  readonly VariantName: string;
  /** Empty for a variant that runs inference components. */
  readonly ModelName: string;
  /** Number of instances. For a serverless variant: 1 with provisioned concurrency, else 0. */
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

/** SageMaker's AsyncInferenceConfig, with its member names. */
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

/** SageMaker's DataCaptureConfig, with its member names. */
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
  /** Shadow variants, which receive copies of the production variant's requests. Absent if there are none. */
  readonly shadows?: readonly ProductionVariant[];
  /** Present in configurations of asynchronous endpoints. */
  readonly asyncInference?: AsyncInferenceConfig;
  /** Present if the request contained a DataCaptureConfig. */
  readonly dataCapture?: DataCaptureConfig;
  readonly request: Readonly<Record<string, unknown>>;
}

/** A variant and its model, copied into the endpoint's record because the model and the configuration may be deleted while the endpoint runs. */
export interface VariantPlan {
  readonly variant: ProductionVariant;
  readonly model: ModelRecord;
  /** True for a shadow variant: it receives copies of the production variant's requests, and its responses are discarded. */
  readonly isShadow?: true;
  /** Expected bytes of memory of each container's models; absent if unknown. */
  readonly expectedBytes?: readonly number[];
}

/** SageMaker's CapacitySize: a number of instances or a percentage of them. */
export interface CapacitySize {
  readonly Type: "INSTANCE_COUNT" | "CAPACITY_PERCENT";
  readonly Value: number;
}

/** SageMaker's TrafficRoutingConfig: how a blue/green update shifts the requests to the new instances. */
export interface TrafficRouting {
  readonly Type: "ALL_AT_ONCE" | "CANARY" | "LINEAR";
  readonly WaitIntervalInSeconds: number;
  readonly CanarySize?: CapacitySize;
  readonly LinearStepSize?: CapacitySize;
}

/** SageMaker's DeploymentConfig of an endpoint update, with its member names. */
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
