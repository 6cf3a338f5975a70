import type { Datatype } from "../tensor/index.ts";
import type { ModelConfigMessage } from "./message.ts";

/**
 * A model's configuration after parsing and completion. Every field is present and checked; `completeConfig` has filled in the defaults.
 * Field numbers, names and defaults follow `inference.ModelConfig` (Triton's model_config.proto); `message` is the protobuf message
 * itself, for printing and for fields that the server does not read.
 */
export interface ModelConfig {
  readonly name: string;
  /** "ensemble" or a legacy platform name; "" when the backend is named instead. */
  readonly platform: string;
  /** "python", "onnxruntime", ...; "" for ensembles. */
  readonly backend: string;
  readonly versionPolicy: VersionPolicy;
  /** 0: no batching, shapes have no batch dimension. */
  readonly maxBatchSize: number;
  readonly inputs: readonly InputConfig[];
  readonly outputs: readonly OutputConfig[];
  readonly scheduling: SchedulingConfig;
  readonly instanceGroups: readonly InstanceGroupConfig[];
  readonly warmUps: readonly WarmUpSample[];
  readonly defaultModelFilename: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly metricTags: ReadonlyMap<string, string>;
  readonly decoupled: boolean;
  /** optimization.graph.level; 0 when absent. */
  readonly graphLevel: number;
  /** The `inference.ModelConfig` protobuf message that this was read from, equally complete. */
  readonly message: ModelConfigMessage;
}

export type VersionPolicy =
  | { readonly kind: "latest"; readonly versionCount: number }
  | { readonly kind: "all" }
  | { readonly kind: "specific"; readonly versions: readonly number[] };

export interface InputConfig {
  readonly name: string;
  readonly datatype: Datatype;
  /** Without the batch dimension; -1 is variable. */
  readonly dims: readonly number[];
  /** The shape that the backend receives (`reshape`); equal to `dims` when not configured. */
  readonly backendDims: readonly number[];
  readonly optional: boolean;
  readonly allowRaggedBatch: boolean;
}

export interface OutputConfig {
  readonly name: string;
  readonly datatype: Datatype;
  readonly dims: readonly number[];
  readonly backendDims: readonly number[];
  /** "" when the output has no labels. */
  readonly labelFilename: string;
}

export type SchedulingConfig = { readonly kind: "direct" } | DynamicBatchingConfig | EnsembleConfig;

export interface DynamicBatchingConfig {
  readonly kind: "dynamic";
  /** Ascending; never empty after completion (`[maxBatchSize]` when not configured, as Triton normalises). */
  readonly preferredBatchSizes: readonly number[];
  readonly queueDelayMaxUs: number;
  readonly preserveOrdering: boolean;
  /** 0: no priorities. 1 is the highest level. */
  readonly priorityLevels: number;
  readonly defaultPriorityLevel: number;
  readonly defaultQueuePolicy: QueuePolicy;
  readonly priorityQueuePolicy: ReadonlyMap<number, QueuePolicy>;
}

export interface QueuePolicy {
  readonly timeoutAction: "REJECT" | "DELAY";
  /** 0: none. */
  readonly defaultTimeoutUs: number;
  readonly allowTimeoutOverride: boolean;
  /** 0: only the server's own limit applies. */
  readonly queueLengthMax: number;
}

export interface EnsembleConfig {
  readonly kind: "ensemble";
  readonly steps: readonly EnsembleStepConfig[];
  /** 0: unlimited. */
  readonly inflightRequestsMax: number;
}

export interface EnsembleStepConfig {
  readonly modelName: string;
  /** -1: the latest version. */
  readonly modelVersion: number;
  /** Step input name to ensemble tensor name. */
  readonly inputMap: ReadonlyMap<string, string>;
  /** Step output name to ensemble tensor name. */
  readonly outputMap: ReadonlyMap<string, string>;
}

/** A sample of `model_warmup`. */
export interface WarmUpSample {
  readonly name: string;
  /** Requests of one row in each execution; 0 omits the sample. */
  readonly batchSize: number;
  /** Executions; at least 1. */
  readonly count: number;
  readonly inputs: readonly WarmUpInput[];
}

export interface WarmUpInput {
  readonly name: string;
  /** Null when none is configured. */
  readonly datatype: Datatype | null;
  /** Without the batch dimension. */
  readonly dims: readonly number[];
  readonly content: { readonly kind: "zero" | "random" | "none" } | { readonly kind: "file"; readonly file: string };
}

export interface InstanceGroupConfig {
  /** Default `<model>` or `<model>_<i>`; instances are `<group>_<c>`. */
  readonly name: string;
  readonly kind: "KIND_AUTO" | "KIND_CPU" | "KIND_GPU" | "KIND_MODEL";
  readonly count: number;
  /** GPUs of a KIND_GPU group: `count` instances run on each. */
  readonly gpus: readonly number[];
}
