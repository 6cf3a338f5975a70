import type { Instance } from "../inference/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";
import type { Arena } from "../tensor/index.ts";
import type { DeviceBytes } from "./device-bytes.ts";
import type { NamespaceMetrics } from "./namespace-metrics.ts";
import type { OtherModels } from "./other-models.ts";

/** Where one version of a model lies on disk, and under which name it is served. */
export interface ModelSource {
  /** The name clients use: the directory's, or the one a container registration maps it to. */
  readonly servedName: string;
  /** <repository>/<model>: absolute. */
  readonly modelDirectory: string;
  readonly version: number;
  /** <modelDirectory>/<version>: absolute; may not exist for ensembles. */
  readonly versionDirectory: string;
}

export interface LoadContext {
  /** The namespace's shared memory; inputs may already lie in it, outputs should. */
  readonly arena: Arena;
  /** `--backend-config=<backend>,k=v` and the global `k=v`, merged for this backend. */
  readonly backendConfig: ReadonlyMap<string, string>;
  /** Called when the model changed its own state after loading: a worker died, for the cause that the backend has logged, or came back. */
  readonly onHealth: (health: { readonly ok: true } | { readonly ok: false; readonly reason: string }) => void;
  /** Called when what `memoryBytes` says has changed by itself: runs left memory behind, or it was given back. */
  readonly onMemory?: () => void;
  /**
   * Takes memory for what the model is to hold in addition, until it is disposed of: then the model is measured again. Throws UNAVAILABLE, with the reason
   * `out-of-memory`, where the budget has no room for it.
   */
  readonly reserveMore?: (bytes: DeviceBytes) => AsyncDisposable;
  /** The door to the other models of the namespace, for models that call them. */
  readonly others: OtherModels;
  /** The door to the metrics that models of the namespace make of their own. */
  readonly metrics: NamespaceMetrics;
  readonly signal: AbortSignal;
}

/** One loaded version of a model. Disposing it ends its workers and gives its memory back; no execution may be running. */
export interface LoadedModel extends AsyncDisposable {
  readonly instances: readonly Instance[];
  /** Further instances, each dormant until all others execute; absent where there are none. */
  readonly spares?: readonly Instance[];
  /** What this version holds by itself now (private memory of its workers; shared sessions are charged to the backend once). */
  memoryBytes(): Promise<DeviceBytes>;
  /**
   * Ends what executes, by force and at once, and refuses what is handed over later; disposing of it waits for no model code any more.
   * A backend whose executions end when nobody waits for them (`Instance.givenUp`) needs none.
   */
  readonly abandon?: (reason: string) => void;
}

/** The outcome of a check of a model without a load. */
export interface ModelCheck {
  /** Errors, a sentence each, in the words of a load. */
  readonly problems: readonly string[];
  /** The configuration as a load would complete it; null where only a load completes it. */
  readonly completion: ModelConfig | null;
  /** What could not be checked, and why. */
  readonly notes: readonly string[];
}

/**
 * A way to run models. `complete` may fill in what the configuration leaves open (max_batch_size, inputs, outputs, scheduling,
 * decoupled) and nothing else. Both throw InferenceError with Triton's texts.
 */
export interface Backend extends AsyncDisposable {
  readonly name: string;
  /** Whether it runs the models of a backend of another name, too; absent where it does so of none. */
  readonly runs?: (backend: string) => Promise<boolean>;
  complete(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<ModelConfig>;
  /**
   * What loading would add to the memory in use, where the backend knows better than the files' sizes tell: nothing for content that
   * another model has loaded already. Null where it does not.
   */
  estimateBytes(source: ModelSource, config: ModelConfig): Promise<DeviceBytes | null>;
  /** Of the model's files, the bytes that another model has in memory already and shares; absent where models share no files. */
  heldBytes?(source: ModelSource, config: ModelConfig): Promise<number>;
  load(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<LoadedModel>;
  /** Checks a model as a load does, without running its code; absent where a load runs none of it. */
  readonly check?: (source: ModelSource, config: ModelConfig) => Promise<ModelCheck>;
  /** Starts what the first model would wait for, where all it takes is there. */
  warmUp(): Promise<void>;
}
