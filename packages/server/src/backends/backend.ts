import type { InferenceError } from "@galatea/base";
import type { Instance } from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { Arena } from "../tensor/index.ts";
import type { DeviceBytes } from "./device-bytes.ts";
import type { NamespaceMetrics } from "./namespace-metrics.ts";
import type { BlsClient } from "./bls-client.ts";

/** The location of one model version on disk, and the name under which clients call it. */
export interface ModelSource {
  /** The name that clients use: the directory's, or the name under which the container API registered the archive. */
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
  /** Called when `memoryBytes` may have changed without a load or unload: runs left memory behind, or it was released. */
  readonly onMemory?: () => void;
  /**
   * Reserves additional memory for the model. Disposing the reservation replaces it by a measurement of the model. Throws UNAVAILABLE, with
   * the reason `out-of-memory`, when the memory budget does not allow it.
   */
  readonly reserveMore?: (bytes: DeviceBytes) => AsyncDisposable;
  /** Calls the other models of the namespace (BLS). */
  readonly bls: BlsClient;
  /** The custom metrics of the namespace's models. */
  readonly metrics: NamespaceMetrics;
  readonly signal: AbortSignal;
}

/** One loaded version of a model. Disposing it ends its workers and frees its memory. No execution may be running then. */
export interface LoadedModel extends AsyncDisposable {
  readonly instances: readonly Instance[];
  /** Additional instances that are started only when all others execute; absent when there are none. */
  readonly spares?: readonly Instance[];
  /**
   * Returns the bytes that this version alone uses now: the private memory of its workers. Memory of sessions that several models share is
   * counted once, not for each model.
   */
  memoryBytes(): Promise<DeviceBytes>;
  /**
   * Ends running executions by force and rejects later ones; disposal then waits for no model code. Absent in a backend whose executions
   * end once nothing waits for them (`Instance.abandonRequest`).
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
   * Returns the memory that a load would add, when the backend can tell better than from the sizes of the files: for example none for
   * content that another model has loaded. Null otherwise.
   */
  estimateBytes(source: ModelSource, config: ModelConfig): Promise<DeviceBytes | null>;
  /** Returns the bytes of the model's files that are already in memory for another model; absent when models do not share files. */
  heldBytes?(source: ModelSource, config: ModelConfig): Promise<number>;
  load(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<LoadedModel>;
  /** Checks a model as a load does, without running its code; absent when loads of this backend run no code of the model. */
  readonly check?: (source: ModelSource, config: ModelConfig) => Promise<ModelCheck>;
  /** Starts what the first load would otherwise wait for, if its prerequisites are installed. */
  warmUp(): Promise<void>;
}
