import type { ResponseSink, InferenceRequest, InferenceResponse } from "../inference/index.ts";
import type { BlockSource, Datatype } from "../tensor/index.ts";
import type { ModelView } from "./model-view.ts";

/** The model of a request, as the client names it. */
export interface ModelTarget {
  /** Namespace under which a model archive was registered; empty for the server's own repositories. */
  readonly namespace: string;
  readonly modelName: string;
  /** Version to use; an empty string selects the highest ready version. */
  readonly modelVersion: string;
}

/**
 * A model that is leased for one call (`using`). The name is looked up once: the whole call uses one version, even if another one is loaded
 * meanwhile. An unload waits for leases, up to the server's drain time.
 */
export interface ServedModel extends Disposable {
  readonly view: ModelView;
  /** False when the loaded model cannot respond, for example because its worker cannot be started. */
  readonly isHealthy: boolean;
  /** The shared memory into which a caller should read the request's body; null when an unload has stopped waiting for this call. */
  readonly arena: BlockSource | null;
  /** Runs a request. Takes ownership of the request's input tensors, even when it fails. The caller releases the response. */
  infer(request: InferenceRequest): Promise<InferenceResponse>;
  /**
   * Runs a request to a decoupled model (`view.config.decoupled`), which `infer` rejects. Responses go to the sink, which always receives a
   * final one. Resolves after the final response.
   */
  stream(request: InferenceRequest, sink: ResponseSink): Promise<void>;
}

/** Inference, and descriptions of the loaded models. Every method throws InferenceError with Triton's code and text. */
export interface Serving {
  readonly live: boolean;
  readonly ready: boolean;
  /** Leases the model of a call. Throws Triton's lookup errors for an unknown model. */
  open(target: ModelTarget): ServedModel;
  serverMetadata(): ServerMetadata;
  modelMetadata(target: ModelTarget): ModelMetadata;
  /** Returns the statistics of ready versions. An empty name selects all models, and an empty version all versions. */
  statistics(modelName: string, modelVersion: string): readonly ModelStatistics[];
}

/** Loads and unloads by name, in the server's own repositories. */
export interface RepositoryControl {
  repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]>;
  loadModel(modelName: string, override: LoadOverride | null, signal: AbortSignal): Promise<void>;
  unloadModel(modelName: string, unloadDependents: boolean): Promise<void>;
}

/** Multi-model hosting: each archive has its own namespace. */
export interface Namespaces {
  /** Registers a directory of model directories under a namespace and loads one of its models. */
  openNamespace(source: NamespaceSource, signal: AbortSignal): Promise<void>;
  /** Unloads the whole namespace and frees its memory; resolves when that is done. NOT_FOUND when unknown. */
  closeNamespace(namespace: string): Promise<void>;
  /** Returns the bytes in use by everything loaded, or by one namespace, and the budget (null: none). */
  memory(namespace?: string): { readonly usedBytes: number; readonly budgetBytes: number | null };
}

/** The server's interface for protocols. */
export interface Engine extends Serving, RepositoryControl, Namespaces {}

export interface NamespaceSource {
  readonly namespace: string;
  /** The directory of the model directories. */
  readonly repositoryDirectory: string;
  /** The model directory to serve, and the name that clients use for it; its ensemble steps are loaded as dependents. */
  readonly modelDirectoryName: string;
  readonly servedName: string;
}

export interface LoadOverride {
  /** ModelConfig as JSON text (load parameter `config`). */
  readonly configJson: string | null;
  /** Contents of the `file:<path>` parameters, by path inside the model directory. */
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
  /** Shape of the tensor; if the model batches, the first dimension is the batch and is -1. */
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
  /** Version number; empty for a model that was never loaded. */
  readonly version: string;
  readonly state: "" | "UNKNOWN" | "READY" | "UNAVAILABLE" | "LOADING" | "UNLOADING";
  readonly reason: string;
}
