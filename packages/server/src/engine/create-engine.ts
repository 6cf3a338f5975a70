import { randomFillSync } from "node:crypto";
import { type ByteBudget, type Clock, InferenceError, type Logger, TaskGroup } from "@galatea/base";
import { machineBytes, type Backend, type DeviceBytes } from "../backends/index.ts";
import { createArena } from "../tensor/index.ts";
import { CallGraph } from "./call-graph.ts";
import type { Catalog } from "./catalog.ts";
import type {
  Engine,
  IndexEntry,
  LoadOverride,
  ModelMetadata,
  ModelStatistics,
  ModelTarget,
  NamespaceSource,
  ServedModel,
} from "./engine.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { modelMetadata, serverExtensions } from "./metadata.ts";
import { ModelLease } from "./model-lease.ts";
import { ModelTable, type ModelEntry } from "./model-entry.ts";
import type { ServingVersion } from "./serving-version.ts";
import { ModelLoader, type LoadSpace } from "./model-loader.ts";
import { VersionObservers, type EngineMetrics } from "./observers.ts";
import { createScheduler } from "./create-scheduler.ts";

export interface EngineOptions {
  readonly id: string;
  readonly version: string;
  /** True if clients may load and unload models by name (`--model-control-mode=explicit`). */
  readonly explicitControl: boolean;
  readonly strictReadiness: boolean;
  readonly autoComplete: boolean;
  readonly backends: readonly Backend[];
  readonly backendConfig: (backend: string) => ReadonlyMap<string, string>;
  /** The catalog of the server's own model repositories. */
  readonly catalog: Catalog;
  /** Returns the catalog of one model archive that was registered through the container API. */
  readonly catalogOf: (source: NamespaceSource) => Catalog;
  readonly arenaBytes: number;
  readonly namespaceArenaBytes: number;
  /** Budget from which the blocks of all arenas are allocated. */
  readonly requestMemory: ByteBudget;
  readonly memoryBudgetBytes: number | null;
  /** Memory limit for models by GPU; a GPU without an entry has no limit. */
  readonly gpuBudgetBytes?: DeviceBytes;
  readonly queueLengthMax: number;
  readonly loadsMax: number;
  /** Time in milliseconds that an unload waits for running requests and for the model's own code before it ends them by force. */
  readonly drainMsMax: number;
  readonly metrics: EngineMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

const learnedCostsMax = 10_000;

/** Creates an engine with nothing loaded. Closing it unloads everything and frees the shared memory. */
export function createEngine(options: EngineOptions): EngineCore {
  return new EngineCore(options);
}

export class EngineCore implements Engine, AsyncDisposable {
  readonly #options: EngineOptions;
  readonly #table = new ModelTable();
  readonly #spaces = new Map<string, OpenSpace>();
  readonly #budget: MemoryBudget;
  readonly #loader: ModelLoader;
  readonly #observers: VersionObservers;
  readonly #draining: TaskGroup;
  /** Loads in progress. Their callers handle failures; this group ignores them. */
  readonly #loads = new TaskGroup(() => {});
  /** Aborts loads in progress when the server exits. */
  readonly #closing = new AbortController();
  #exiting = false;
  /** True if the server failed to start (`fail`). The server then stays up, not ready, until it is stopped. */
  #hasFailed = false;
  /** Namespaces that are closing, by name. Their running requests complete; new ones are rejected. */
  readonly #closingSpaces = new Map<string, Promise<void>>();

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#budget = new MemoryBudget(
      new Map([
        ...(options.memoryBudgetBytes === null ? [] : machineBytes(options.memoryBudgetBytes)),
        ...(options.gpuBudgetBytes ?? []),
      ]),
      learnedCostsMax,
    );
    this.#observers = new VersionObservers(options.metrics);
    this.#draining = new TaskGroup((error) =>
      options.log.error(`unloading failed: ${InferenceError.from(error).message}`),
    );
    this.#openSpace({ namespace: "", catalog: options.catalog, served: "" }, options.arenaBytes);
    this.#loader = new ModelLoader({
      table: this.#table,
      backends: options.backends,
      backendConfig: options.backendConfig,
      autoComplete: options.autoComplete,
      budget: this.#budget,
      clock: options.clock,
      calls: new CallGraph(options.clock),
      callers: {
        table: this.#table,
        clock: options.clock,
        load: (namespace, name, override, signal) => this.#loadCalled(namespace, name, override, signal),
        unload: (namespace, name, unloadDependents) => this.#unloadCalled(namespace, name, unloadDependents),
        isClosing: (namespace) => this.#exiting || this.#closingSpaces.has(namespace),
      },
      drainMsMax: options.drainMsMax,
      log: options.log,
      fillRandom: randomFillSync,
      scheduler: (config, version, created) =>
        createScheduler(config, created, {
          modelVersion: String(version),
          clock: options.clock,
          queueLengthMax: options.queueLengthMax,
        }),
      observer: (opened) => this.#observers.open(opened),
      onRetired: (namespace, name, version) => this.#observers.close(namespace, name, version),
      background: (work) => this.#draining.run(() => work),
    });
  }

  get live(): boolean {
    return !this.#exiting && !this.#hasFailed;
  }

  /**
   * With strict readiness, true if every known version is ready and healthy, or was unloaded on request. Otherwise true while the server is
   * live.
   */
  get ready(): boolean {
    if (!this.live) return false;
    if (!this.#options.strictReadiness) return true;
    for (const entry of this.#table.entries("")) {
      for (const state of entry.versions.values()) {
        if (state.at === "ready" && state.serving.health.unhealthy === null) continue;
        if (state.at === "unavailable" && state.reason === "unloaded") continue;
        return false;
      }
    }
    return true;
  }

  open({ namespace, modelName, modelVersion }: ModelTarget): ServedModel {
    this.#requireLive();
    if (this.#closingSpaces.has(namespace)) throw noVersion(modelName);
    const serving = this.#table.require(namespace, modelName).lookup(modelVersion);
    return new ModelLease(serving, this.#spaces, namespace);
  }

  serverMetadata() {
    return { name: this.#options.id, version: this.#options.version, extensions: serverExtensions };
  }

  modelMetadata({ namespace, modelName, modelVersion }: ModelTarget): ModelMetadata {
    this.#requireLive();
    const entry = this.#table.require(namespace, modelName);
    const serving = entry.lookup(modelVersion);
    const versions = modelVersion === "" ? entry.ready().map(({ version }) => String(version)) : [serving.version];
    return modelMetadata(serving.config, serving.facts, versions);
  }

  statistics(modelName: string, modelVersion: string): readonly ModelStatistics[] {
    this.#requireLive();
    const rows: ModelStatistics[] = [];
    for (const entry of this.#table.entries("")) {
      if (modelName !== "" && entry.name !== modelName) continue;
      for (const { version } of entry.ready()) {
        if (modelVersion !== "" && String(version) !== modelVersion) continue;
        rows.push(this.#observers.statistics("", entry.name, version));
      }
    }
    if (modelName !== "" && rows.length === 0) {
      const known = (this.#table.entry("", modelName)?.latest ?? null) !== null;
      throw new InferenceError(
        "INVALID_ARG",
        known
          ? `requested model version is not available for model '${modelName}'`
          : `requested model '${modelName}' is not available`,
      );
    }
    return rows;
  }

  async repositoryIndex(readyOnly: boolean): Promise<readonly IndexEntry[]> {
    this.#requireLive();
    const rows: IndexEntry[] = [];
    const listed = new Set<string>();
    for (const { name, duplicate } of await this.#options.catalog.names()) {
      listed.add(name);
      if (duplicate) {
        rows.push({ name, version: "", state: "UNAVAILABLE", reason: "model appears in two or more repositories" });
      } else rows.push(...indexRows(name, this.#table.entry("", name), readyOnly));
    }
    for (const entry of this.#table.entries("")) {
      if (!listed.has(entry.name) && entry.latest !== null) rows.push(...indexRows(entry.name, entry, readyOnly));
    }
    return rows;
  }

  async loadModel(modelName: string, override: LoadOverride | null, signal: AbortSignal): Promise<void> {
    this.#requireLive();
    this.#requireExplicit();
    await this.#load(this.#space(""), modelName, override, signal);
  }

  /** Loads a model that another model of the namespace requested by name. */
  async #loadCalled(
    namespace: string,
    name: string,
    override: LoadOverride | null,
    signal: AbortSignal,
  ): Promise<void> {
    this.#requireControlOf(namespace);
    await this.#load(this.#space(namespace), name, override, signal);
  }

  #unloadCalled(namespace: string, name: string, unloadDependents: boolean): Promise<void> {
    this.#requireControlOf(namespace);
    const entry = this.#table.entry(namespace, name);
    if (entry !== undefined) this.#loader.unload(entry, unloadDependents);
    return Promise.resolve();
  }

  #requireControlOf(namespace: string): void {
    if (namespace === "") this.#requireExplicit();
    if (this.#exiting || this.#closingSpaces.has(namespace))
      throw new InferenceError("UNAVAILABLE", "the models of this namespace are being unloaded");
  }

  #load(space: LoadSpace, name: string, override: LoadOverride | null, signal: AbortSignal): Promise<void> {
    const either = AbortSignal.any([signal, this.#closing.signal]);
    const loading = this.#loader.load(space, name, { override, ancestors: [], signal: either });
    this.#loads.run(() => loading);
    return loading;
  }

  /** Prepares every backend for its first load (`Backend.warmUp`). */
  async warmUp(): Promise<void> {
    await Promise.all(this.#options.backends.map((backend) => backend.warmUp()));
  }

  /** Loads the named models, or all models in the repositories. Resolves with the names of the models that failed. */
  async loadAtStart(names: readonly string[] | "all", signal: AbortSignal): Promise<readonly string[]> {
    const desired = names === "all" ? (await this.#options.catalog.names()).map((each) => each.name) : names;
    const queue = [...desired];
    const failed: string[] = [];
    const worker = async (): Promise<void> => {
      for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
        try {
          await this.#load(this.#space(""), name, null, signal);
        } catch {
          // The loader has logged the reason of the failure.
          signal.throwIfAborted();
          failed.push(name);
        }
      }
    };
    await Promise.all(Array.from({ length: this.#options.loadsMax }, worker));
    return failed;
  }

  unloadModel(modelName: string, unloadDependents: boolean): Promise<void> {
    this.#requireLive();
    this.#requireExplicit();
    const entry = this.#table.entry("", modelName);
    if (entry !== undefined) this.#loader.unload(entry, unloadDependents);
    return Promise.resolve();
  }

  async openNamespace(source: NamespaceSource, signal: AbortSignal): Promise<void> {
    if (this.#spaces.has(source.namespace))
      throw new InferenceError(
        "ALREADY_EXISTS",
        `model repository '${source.repositoryDirectory}' has already been registered`,
      );
    const { namespace, servedName: served } = source;
    const catalog = this.#options.catalogOf(source);
    const space = this.#openSpace({ namespace, catalog, served }, this.#options.namespaceArenaBytes);
    try {
      await this.#load(space, source.servedName, null, signal);
    } catch (error) {
      await this.closeNamespace(source.namespace);
      throw error;
    }
  }

  /**
   * Closes a namespace in two phases. First, new requests are rejected and running ones complete, with their calls to other models. Then
   * the models are unloaded. Without the first phase, a running model could call one that is already unloaded, and fail.
   */
  async closeNamespace(namespace: string): Promise<void> {
    const space = this.#spaces.get(namespace);
    if (space === undefined || namespace === "" || this.#closingSpaces.has(namespace))
      throw new InferenceError("NOT_FOUND", `model repository '${namespace}' is not registered`);
    const closing = this.#endSpace(space);
    this.#closingSpaces.set(namespace, closing);
    await closing.finally(() => this.#closingSpaces.delete(namespace));
  }

  async #endSpace(space: OpenSpace): Promise<void> {
    const { namespace } = space;
    await this.#drain(namespace);
    const served = await Promise.all(
      this.#table.entries(namespace).map((entry) => entry.enqueue(() => Promise.resolve(takeReady(entry)))),
    );
    // The models are disposed outside of their load queues, because the disposal of a step waits for the ensembles that use it.
    await Promise.all(
      served.flat().map(async ({ serving }) => {
        await serving[Symbol.asyncDispose]();
        this.#observers.close(namespace, serving.facts.name, Number(serving.version));
      }),
    );
    this.#table.remove(namespace);
    this.#spaces.delete(namespace);
    await closeSpace(space);
  }

  /** Waits until no call uses any model of the namespace. After the drain time, models that are still in use are abandoned. */
  async #drain(namespace: string): Promise<void> {
    const { clock, drainMsMax } = this.#options;
    let isLate = false;
    using _late = clock.timer(drainMsMax, () => {
      isLate = true;
      for (const serving of this.#served(namespace))
        if (!serving.isIdle) serving.abandon(`its unload waited for ${drainMsMax / 1000} s`);
    });
    // The loop repeats, because a request that has completed may have called another model meanwhile.
    for (;;) {
      const busy = this.#served(namespace).filter((serving) => !serving.isIdle);
      if (isLate || busy.length === 0) return;
      await Promise.all(busy.map((serving) => serving.whenIdle()));
    }
  }

  #served(namespace: string): ServingVersion[] {
    return this.#table.entries(namespace).flatMap((entry) => entry.ready().map(({ serving }) => serving));
  }

  memory(namespace?: string) {
    const budget = this.#budget;
    const usedBytes = namespace === undefined ? budget.usedBytes("machine") : budget.usedBytesOf(namespace, "machine");
    return { usedBytes, budgetBytes: budget.budgetBytes("machine") };
  }

  #openSpace(about: Pick<OpenSpace, "namespace" | "catalog" | "served">, capacityBytes: number): OpenSpace {
    const { requestMemory: budget, clock, metrics } = this.#options;
    const arena = createArena({ capacityBytes, budget, clock });
    const space = { ...about, arena, metrics: metrics.ofModels(about.namespace, arena) };
    this.#spaces.set(about.namespace, space);
    return space;
  }

  #space(namespace: string): OpenSpace {
    const space = this.#spaces.get(namespace);
    if (space === undefined) throw new InferenceError("NOT_FOUND", `model namespace '${namespace}' is not registered`);
    return space;
  }

  #requireLive(): void {
    if (!this.live) throw new InferenceError("UNAVAILABLE", "Server not ready");
  }

  #requireExplicit(): void {
    if (!this.#options.explicitControl)
      throw new InferenceError("UNAVAILABLE", "explicit model load / unload is not allowed if polling is enabled");
  }

  /** Marks a server that could not be created but stays up: it is not live, and every call of a model or repository is UNAVAILABLE. */
  fail(): void {
    this.#hasFailed = true;
  }

  /**
   * Ends loads in progress and running executions by force. Called when the server's drain time has expired. The caller must still close
   * the engine.
   */
  abandon(why: string): void {
    this.#exit();
    for (const namespace of this.#table.namespaces)
      for (const entry of this.#table.entries(namespace)) for (const { serving } of entry.ready()) serving.abandon(why);
  }

  #exit(): void {
    this.#exiting = true;
    this.#closing.abort(new InferenceError("UNAVAILABLE", "Server exiting"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#exit();
    await this.#loads.waitForTasks();
    await Promise.all([...this.#spaces.keys()].map((namespace) => this.#drain(namespace)));
    for (const namespace of this.#spaces.keys())
      if (namespace !== "") await (this.#closingSpaces.get(namespace) ?? this.closeNamespace(namespace));
    const own = this.#space("");
    for (const entry of this.#table.entries("")) this.#loader.unload(entry, false);
    await this.#draining[Symbol.asyncDispose]();
    for (const backend of this.#options.backends) await backend[Symbol.asyncDispose]();
    await closeSpace(own);
  }
}

/** An open namespace. */
interface OpenSpace extends LoadSpace {
  readonly metrics: LoadSpace["metrics"] & Disposable;
  readonly served: string;
}

async function closeSpace({ arena, metrics, catalog }: OpenSpace): Promise<void> {
  metrics[Symbol.dispose]();
  arena[Symbol.dispose]();
  await catalog[Symbol.asyncDispose]();
}

function noVersion(modelName: string): InferenceError {
  return new InferenceError("NOT_FOUND", `Request for unknown model: '${modelName}' has no available versions`);
}

/** Takes a model's ready versions out of service and returns them; the caller disposes them. */
function takeReady(entry: ModelEntry) {
  const ready = entry.ready();
  for (const { version } of ready) entry.setState(version, { at: "unloading" });
  return ready;
}

function indexRows(name: string, entry: ModelEntry | undefined, readyOnly: boolean): IndexEntry[] {
  const rows: IndexEntry[] = [];
  for (const [version, state] of [...(entry?.versions ?? [])].sort(([a], [b]) => a - b)) {
    const label = version === -1 ? "" : String(version);
    if (state.at === "ready") rows.push({ name, version: label, state: "READY", reason: "" });
    else if (readyOnly || state.at === "absent") continue;
    else if (state.at === "unavailable")
      rows.push({ name, version: label, state: "UNAVAILABLE", reason: state.reason });
    else rows.push({ name, version: label, state: state.at === "loading" ? "LOADING" : "UNLOADING", reason: "" });
  }
  const isUntouched = entry === undefined || entry.versions.size === 0;
  if (isUntouched && !readyOnly) rows.push({ name, version: "", state: "", reason: "" });
  return rows;
}
