import type { InferenceRequest, InferenceResponse } from "../inference/index.ts";
import type { Arena, Datatype } from "../tensor/index.ts";

/** What protocols may ask of the server. Every method throws InferenceError with the original's code and text. */
export interface Engine {
  /** Takes the request's input tensors over, in every outcome. The response is the caller's to release. */
  infer(request: InferenceRequest): Promise<InferenceResponse>;
  /** The shared memory a request body for this model is best read into; null when the model is unknown or its backend wants none. */
  bodyArena(namespace: string, modelName: string): Arena | null;

  readonly live: boolean;
  readonly ready: boolean;
  /** Throws the lookup errors of an unknown model; false when loaded but unhealthy. */
  modelReady(namespace: string, modelName: string, modelVersion: string): boolean;
  serverMetadata(): ServerMetadata;
  modelMetadata(namespace: string, modelName: string, modelVersion: string): ModelMetadata;
  /** The configuration as the original prints it: proto field names, defaults filled, int64 as numbers. */
  modelConfigJson(namespace: string, modelName: string, modelVersion: string): unknown;
  /** Labels of an output for the classification extension, [] without a label file. */
  outputLabels(namespace: string, modelName: string, modelVersion: string, output: string): readonly string[];
  /** "" for all models; "" for all versions. */
  statistics(modelName: string, modelVersion: string): readonly ModelStatistics[];
  repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]>;
  loadModel(modelName: string, override: LoadOverride | null, signal: AbortSignal): Promise<void>;
  unloadModel(modelName: string, unloadDependents: boolean): Promise<void>;

  /** Multi-model hosting: registers a directory of model directories under a namespace and loads one of its models. */
  openNamespace(source: NamespaceSource, signal: AbortSignal): Promise<void>;
  /** Unloads everything of the namespace and gives its memory back; resolves when that is done. NOT_FOUND when unknown. */
  closeNamespace(namespace: string): Promise<void>;
  /** Bytes now held by everything loaded, or by what one namespace loaded, and the budget (null: none). */
  memory(namespace?: string): { readonly usedBytes: number; readonly budgetBytes: number | null };
}

export interface NamespaceSource {
  readonly namespace: string;
  /** Directory that holds the model directories. */
  readonly repositoryDirectory: string;
  /** The model directory to serve, and the name clients use for it; its ensemble steps load as dependents. */
  readonly modelDirectoryName: string;
  readonly servedName: string;
}

export interface LoadOverride {
  /** ModelConfig as JSON text (load parameter `config`). */
  readonly configJson: string | null;
  /** `file:<path>` parameters: path inside the model directory to content. */
  readonly files: ReadonlyMap<string, Uint8Array>;
}

export interface ServerMetadata {
  readonly name: string;
  readonly version: string;
  readonly extensions: readonly string[];
}

export interface TensorMetadata {
  readonly name: string;
  readonly datatype: Datatype;
  /** Including the batch dimension as -1 where the model batches. */
  readonly shape: readonly number[];
}

export interface ModelMetadata {
  readonly name: string;
  readonly versions: readonly string[];
  readonly platform: string;
  readonly inputs: readonly TensorMetadata[];
  readonly outputs: readonly TensorMetadata[];
}

export interface DurationStatistics {
  readonly count: number;
  readonly ns: number;
}

/** One row of /v2/models/stats; names follow the protocol's keys in camel case. */
export interface ModelStatistics {
  readonly name: string;
  readonly version: string;
  readonly lastInferenceMs: number;
  readonly inferenceCount: number;
  readonly executionCount: number;
  readonly success: DurationStatistics;
  readonly fail: DurationStatistics;
  readonly queue: DurationStatistics;
  readonly computeInput: DurationStatistics;
  readonly computeInfer: DurationStatistics;
  readonly computeOutput: DurationStatistics;
  readonly batches: readonly {
    readonly batchSize: number;
    readonly computeInput: DurationStatistics;
    readonly computeInfer: DurationStatistics;
    readonly computeOutput: DurationStatistics;
  }[];
}

export interface IndexEntry {
  readonly name: string;
  /** "" for a model never touched. */
  readonly version: string;
  readonly state: "" | "UNKNOWN" | "READY" | "UNAVAILABLE" | "LOADING" | "UNLOADING";
  readonly reason: string;
}
