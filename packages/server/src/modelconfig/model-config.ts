import type { Datatype } from "../tensor/index.ts";
import type { ModelConfigMessage } from "./message.ts";

/**
 * A model's configuration after parsing and completion. Every field is present and checked. Names and defaults follow
 * `inference.ModelConfig` (Triton's model_config.proto). `message` is the protobuf message itself, for printing and for fields that the
 * server does not read.
 */
export interface ModelConfig {
  readonly name: string;
  /** Name of the platform: "ensemble" or a legacy name; "" if the configuration names a backend. */
  readonly platform: string;
  /** Name of the backend, such as "python" or "onnxruntime"; "" for ensembles. */
  readonly backend: string;
  readonly versionPolicy: VersionPolicy;
  /** Maximum batch size; 0 for a model that does not batch, whose shapes have no batch dimension. */
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
  /** Value of `optimization.graph.level`; 0 if absent. */
  readonly graphLevel: number;
  /** The completed protobuf message of the configuration. */
  readonly message: ModelConfigMessage;
}

export type VersionPolicy =
  | { readonly kind: "latest"; readonly versionCount: number }
  | { readonly kind: "all" }
  | { readonly kind: "specific"; readonly versions: readonly number[] };

export interface InputConfig {
  readonly name: string;
  readonly datatype: Datatype;
  /** Dimensions without the batch dimension; -1 is variable. */
  readonly dims: readonly number[];
  /** The shape that the backend receives (`reshape`); equal to `dims` without `reshape`. */
  readonly backendDims: readonly number[];
  readonly optional: boolean;
  readonly allowRaggedBatch: boolean;
}

export interface OutputConfig {
  readonly name: string;
  readonly datatype: Datatype;
  readonly dims: readonly number[];
  readonly backendDims: readonly number[];
  /** Name of the label file; "" if the output has no labels. */
  readonly labelFilename: string;
}

export type SchedulingConfig = { readonly kind: "direct" } | DynamicBatchingConfig | EnsembleConfig;

export interface DynamicBatchingConfig {
  readonly kind: "dynamic";
  /** Preferred batch sizes, ascending. Never empty: if none are configured, completion sets `[maxBatchSize]`, as Triton does. */
  readonly preferredBatchSizes: readonly number[];
  readonly queueDelayMaxUs: number;
  readonly preserveOrdering: boolean;
  /** Number of priority levels, of which 1 is the highest; 0 if the model has no priorities. */
  readonly priorityLevels: number;
  readonly defaultPriorityLevel: number;
  readonly defaultQueuePolicy: QueuePolicy;
  readonly priorityQueuePolicy: ReadonlyMap<number, QueuePolicy>;
}

export interface QueuePolicy {
  readonly timeoutAction: "REJECT" | "DELAY";
  /** Queue timeout in microseconds; 0 for no timeout. */
  readonly defaultTimeoutUs: number;
  readonly allowTimeoutOverride: boolean;
  /** Maximum number of waiting requests; if it is 0, only the server's own limit applies. */
  readonly queueLengthMax: number;
}

export interface EnsembleConfig {
  readonly kind: "ensemble";
  readonly steps: readonly EnsembleStepConfig[];
  /** Maximum number of concurrent requests to each step; 0 for no limit. */
  readonly inflightRequestsMax: number;
}

export interface EnsembleStepConfig {
  readonly modelName: string;
  /** Required version of the step's model; -1 for the latest version. */
  readonly modelVersion: number;
  /** Ensemble tensor names by the step's input names. */
  readonly inputMap: ReadonlyMap<string, string>;
  /** Ensemble tensor names by the step's output names. */
  readonly outputMap: ReadonlyMap<string, string>;
}

/** A sample of `model_warmup`. */
export interface WarmUpSample {
  readonly name: string;
  /** Requests of one row in each execution; 0 omits the sample. */
  readonly batchSize: number;
  /** Number of executions; at least 1. */
  readonly count: number;
  readonly inputs: readonly WarmUpInput[];
}

export interface WarmUpInput {
  readonly name: string;
  /** Datatype of the input; null if none is configured. */
  readonly datatype: Datatype | null;
  /** Dimensions without the batch dimension. */
  readonly dims: readonly number[];
  readonly content: { readonly kind: "zero" | "random" | "none" } | { readonly kind: "file"; readonly file: string };
}

export interface InstanceGroupConfig {
  /** Default `<model>`, or `<model>_<i>` for several groups; its instances are `<group>_<c>`. */
  readonly name: string;
  readonly kind: "KIND_AUTO" | "KIND_CPU" | "KIND_GPU" | "KIND_MODEL";
  readonly count: number;
  /** GPUs of a KIND_GPU group. `count` instances run on each. */
  readonly gpus: readonly number[];
}
