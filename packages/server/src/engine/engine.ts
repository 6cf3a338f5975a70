import type { AnswerSink, InferenceRequest, InferenceResponse } from "../inference/index.ts";
import type { BlockSource, Datatype } from "../tensor/index.ts";
import type { ModelView } from "./model-view.ts";

/** Which model a request is for, as it came on the wire. */
export interface ModelTarget {
  /** "" is the server's own repositories; else the namespace that a model archive was registered under. */
  readonly namespace: string;
  readonly modelName: string;
  /** "" asks for the highest ready version. */
  readonly modelVersion: string;
}

/**
 * A model that was found, held for a call with `using`: its name is looked up once, at the door, and whatever is loaded or unloaded
 * meanwhile, the call sees one version from its first byte to its last. An unload waits for its calls, up to the server's bound.
 */
export interface ServedModel extends Disposable {
  readonly view: ModelView;
  /** False when loaded and not able to answer: a worker that cannot be started, say. */
  readonly isHealthy: boolean;
  /** The shared memory that a request's body is best read into; null when its unload did not wait for this call any longer. */
  readonly arena: BlockSource | null;
  /** Takes the request's input tensors over, in every outcome. The response is the caller's to release. */
  infer(request: InferenceRequest): Promise<InferenceResponse>;
  /**
   * The same for a decoupled model (`view.config.decoupled`), which `infer` is not for: its answers go to the sink, the last one in every
   * outcome. Resolves when that has been given.
   */
  stream(request: InferenceRequest, sink: AnswerSink): Promise<void>;
}

/** Inference, and what is told of the models that serve. Every method throws InferenceError with Triton's code and text. */
export interface Serving {
  readonly live: boolean;
  readonly ready: boolean;
  /** The model of a call. Throws the lookup errors of an unknown model. */
  open(target: ModelTarget): ServedModel;
  serverMetadata(): ServerMetadata;
  modelMetadata(target: ModelTarget): ModelMetadata;
  /** "" for all models; "" for all versions. */
  statistics(modelName: string, modelVersion: string): readonly ModelStatistics[];
}

/** Loading and unloading by name, in the server's own repositories. */
export interface RepositoryControl {
  repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]>;
  loadModel(modelName: string, override: LoadOverride | null, signal: AbortSignal): Promise<void>;
  unloadModel(modelName: string, unloadDependents: boolean): Promise<void>;
}

/** Multi-model hosting: each archive has a namespace of its own. */
export interface Namespaces {
  /** Registers a directory of model directories under a namespace and loads one of its models. */
  openNamespace(source: NamespaceSource, signal: AbortSignal): Promise<void>;
  /** Unloads everything of the namespace and gives its memory back; resolves when that is done. NOT_FOUND when unknown. */
  closeNamespace(namespace: string): Promise<void>;
  /** Bytes now held by everything loaded, or by what one namespace loaded, and the budget (null: none). */
  memory(namespace?: string): { readonly usedBytes: number; readonly budgetBytes: number | null };
}

/** What protocols may ask of the server. */
export interface Engine extends Serving, RepositoryControl, Namespaces {}

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
