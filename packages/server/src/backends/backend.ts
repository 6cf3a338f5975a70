import type { InferenceError } from "@galatea/base";
import type { Instance } from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { Arena } from "../tensor/index.ts";
import type { DeviceBytes } from "./device-bytes.ts";
import type { NamespaceMetrics } from "./namespace-metrics.ts";
import type { OtherModels } from "./other-models.ts";

/** The location of one model version on disk, and the name under which it is served. */
export interface ModelSource {
  /** The name that clients use: the directory's, or the name that a container registration gives it. */
  readonly servedName: string;
  /** Absolute path <repository>/<model>. */
  readonly modelDirectory: string;
  readonly version: number;
  /** Absolute path <modelDirectory>/<version>; may not exist for ensembles. */
  readonly versionDirectory: string;
}

export interface LoadContext {
  /** The namespace's shared memory. Inputs may already be in it; outputs should be. */
  readonly arena: Arena;
  /** `--backend-config=<backend>,k=v` and the global `k=v`, merged for this backend. */
  readonly backendConfig: ReadonlyMap<string, string>;
  /** Called when the model's state changes after loading: a worker died, for a reason that the backend has logged, or came back. */
  readonly onHealth: (health: { readonly ok: true } | { readonly ok: false; readonly reason: string }) => void;
  /** Called when `memoryBytes` changes by itself: runs left memory behind, or it was released. */
  readonly onMemory?: () => void;
  /**
   * Reserves memory that the model needs in addition; disposing the reservation measures the model again. Throws UNAVAILABLE, with the
   * reason `out-of-memory`, when the budget has no room for it.
   */
  readonly reserveMore?: (bytes: DeviceBytes) => AsyncDisposable;
  /** Calls to the other models of the namespace. */
  readonly others: OtherModels;
  /** The custom metrics of the namespace's models. */
  readonly metrics: NamespaceMetrics;
  readonly signal: AbortSignal;
}

/** One loaded version of a model. Disposing it ends its workers and frees its memory; no execution may be running. */
export interface LoadedModel extends AsyncDisposable {
  readonly instances: readonly Instance[];
  /** More instances, each dormant until all others execute; absent when there are none. */
  readonly spares?: readonly Instance[];
  /**
   * Returns the bytes that this version alone uses now (private memory of its workers; shared sessions are charged to the backend once).
   */
  memoryBytes(): Promise<DeviceBytes>;
  /**
   * Ends running executions by force and rejects later ones; disposal then waits for no model code. Absent in a backend whose executions
   * end once nothing waits for them (`Instance.givenUp`).
   */
  readonly abandon?: (reason: string) => void;
}

/** The result of a check of a model without a load. */
export interface ModelCheck {
  /** The errors of a load. */
  readonly problems: readonly InferenceError[];
  /** The configuration as a load would complete it; null when only a load completes it. */
  readonly completion: ModelConfig | null;
  /** Checks that were not possible, each with the reason. */
  readonly notes: readonly string[];
}

/**
 * A way to run models. `complete` may fill in fields that the configuration leaves open (max_batch_size, inputs, outputs, scheduling,
 * decoupled) and nothing else. Both throw InferenceError with Triton's texts.
 */
export interface Backend extends AsyncDisposable {
  readonly name: string;
  /** Returns whether this backend also runs the models of another backend; absent when it runs none of them. */
  readonly runs?: (backend: string) => Promise<boolean>;
  complete(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<ModelConfig>;
  /**
   * Returns the memory that loading would add, when the backend knows better than the sizes of the files: none for content that another
   * model has already loaded. Null when it does not know better.
   */
  estimateBytes(source: ModelSource, config: ModelConfig): Promise<DeviceBytes | null>;
  /** Returns the bytes of the model's files that another model already has in memory and shares; absent when models share no files. */
  heldBytes?(source: ModelSource, config: ModelConfig): Promise<number>;
  load(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<LoadedModel>;
  /** Checks a model as a load does, without running its code; absent when a load runs none of it. */
  readonly check?: (source: ModelSource, config: ModelConfig) => Promise<ModelCheck>;
  /** Starts what the first model would wait for, if its prerequisites are installed. */
  warmUp(): Promise<void>;
}
