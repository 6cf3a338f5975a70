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
  readonly containers: Containers;
  /** Whether a request passes through all containers, in their order, or goes to the one that it names. */
  readonly executionMode: "Serial" | "Direct";
  /** The members of the request that Describe returns, as they came. */
  readonly request: Readonly<Record<string, unknown>>;
}

export interface ProductionVariant {
  readonly VariantName: string;
  readonly ModelName: string;
  readonly InitialInstanceCount: number;
  readonly InstanceType: string;
  readonly InitialVariantWeight: number;
  readonly VolumeSizeInGB?: number;
  readonly ContainerStartupHealthCheckTimeoutInSeconds?: number;
  readonly ModelDataDownloadTimeoutInSeconds?: number;
  readonly RoutingConfig?: { readonly RoutingStrategy: string };
  readonly [member: string]: unknown;
}

export interface EndpointConfigRecord {
  readonly name: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly owner: Owner;
  readonly variants: readonly ProductionVariant[];
  readonly request: Readonly<Record<string, unknown>>;
}

/** What a fleet is built from: copied at creation, because models and configurations may be deleted while it runs. */
export interface VariantPlan {
  readonly variant: ProductionVariant;
  readonly model: ModelRecord;
}
