import type { InferenceError } from "@galatea/base";
import type { Instance } from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { Arena } from "../tensor/index.ts";
import type { DeviceBytes } from "./device-bytes.ts";
import type { NamespaceMetrics } from "./namespace-metrics.ts";
import type { BlsClient } from "./bls-client.ts";

/** The location of one model version on disk, and the name under which clients call it. */
export interface ModelSource {
  /** The name that clients use: the directory's name, or the name under which the container API registered the archive. */
  readonly servedName: string;
  /** Absolute path <repository>/<model>. */
  readonly modelDirectory: string;
  readonly version: number;
  /** Absolute path <modelDirectory>/<version>; need not exist for an ensemble. */
  readonly versionDirectory: string;
}

export interface LoadContext {
  /** The namespace's shared memory. Inputs may already be in it; outputs should be allocated from it. */
  readonly arena: Arena;
  /** `--backend-config=<backend>,k=v` and the global `k=v`, merged for this backend. */
  readonly backendConfig: ReadonlyMap<string, string>;
  /** Called when the health of the loaded model changes: a worker died, for a reason that the backend has logged, or was restarted. */
  readonly onHealth: (health: { readonly ok: true } | { readonly ok: false; readonly reason: string }) => void;
  /**
   * Called when the memory of the loaded model (`memoryBytes`) may have changed without a load or unload: runs kept memory allocated, or it
   * was released.
   */
  readonly onMemory?: () => void;
  /**
   * Reserves additional memory for the model. When the reservation is disposed, a measurement of the model replaces it. Throws UNAVAILABLE,
   * with the reason `out-of-memory`, if the memory budget does not allow it.
   */
  readonly reserveMore?: (bytes: DeviceBytes) => AsyncDisposable;
  /** Calls the other models of the namespace (BLS). */
  readonly bls: BlsClient;
  /** The custom metrics of the namespace's models. */
  readonly metrics: NamespaceMetrics;
  readonly signal: AbortSignal;
}

/** One loaded version of a model. Disposing it ends its workers and frees its memory. No execution may be in progress then. */
export interface LoadedModel extends AsyncDisposable {
  readonly instances: readonly Instance[];
  /** Additional instances that are started only when all others execute; absent when there are none. */
  readonly spares?: readonly Instance[];
  /**
   * Returns the bytes that this version uses now: the private memory of its workers. The memory of a session that several models share is
   * counted for only one of them.
   */
  memoryBytes(): Promise<DeviceBytes>;
  /**
   * Ends running executions by force and rejects later ones, so that disposal does not wait for model code. Absent in a backend whose
   * executions end once no caller waits for them (`Instance.abandonRequest`).
   */
  readonly abandon?: (reason: string) => void;
}

/** The result of checking a model without loading it. */
export interface ModelCheck {
  /** The errors that a load would report. */
  readonly problems: readonly InferenceError[];
  /** The configuration as a load would complete it; null when it cannot be completed without a load. */
  readonly completion: ModelConfig | null;
  /** The checks that could not run, each with the reason. */
  readonly notes: readonly string[];
}

/**
 * A kind of model runtime, such as ONNX Runtime. `complete` may fill in fields that the configuration leaves open (max_batch_size, inputs,
 * outputs, scheduling, decoupled) and no others. Both `complete` and `load` throw InferenceError with Triton's texts.
 */
export interface Backend extends AsyncDisposable {
  readonly name: string;
  /** Returns whether this backend also runs the models of another backend name; absent when it runs none. */
  readonly runs?: (backend: string) => Promise<boolean>;
  complete(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<ModelConfig>;
  /**
   * Returns the memory that a load would add, if the backend knows it better than the sizes of the files show. For example, a load adds
   * nothing if another model has loaded the same content. Null otherwise.
   */
  estimateBytes(source: ModelSource, config: ModelConfig): Promise<DeviceBytes | null>;
  /** Returns the bytes of the model's files that are already in memory for another model; absent when models do not share files. */
  heldBytes?(source: ModelSource, config: ModelConfig): Promise<number>;
  load(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<LoadedModel>;
  /** Checks a model as a load does, without running its code; absent when loads of this backend run no code of the model. */
  readonly check?: (source: ModelSource, config: ModelConfig) => Promise<ModelCheck>;
  /**
   * Prepares the backend (for example, starts its processes) so that the first load does not wait for that. Does nothing if the
   * prerequisites are not installed.
   */
  warmUp(): Promise<void>;
}
