import { InferenceError, type Clock, type Logger } from "../base/index.ts";
import type { Backend } from "../backends/index.ts";
import type { InferenceRequest, InferenceResponse } from "../inference/index.ts";
import { printConfigJson } from "../modelconfig/index.ts";
import { createArena, releaseTensors, type Arena } from "../tensor/index.ts";
import type { Catalog } from "./catalog.ts";
import type { Engine, IndexEntry, LoadOverride, ModelMetadata, ModelStatistics, NamespaceSource } from "./engine.ts";
import { MemoryBudget } from "./memory-budget.ts";
import { modelMetadata, serverExtensions } from "./metadata.ts";
import { ModelTable, type ModelEntry } from "./model-entry.ts";
import { ModelLoader, type LoadSpace } from "./model-loader.ts";
import { VersionObservers, type EngineMetrics } from "./observers.ts";
import { schedulerFor } from "./scheduler-for.ts";
import type { ServingVersion } from "./serving-version.ts";

export interface EngineOptions {
  readonly id: string;
  readonly version: string;
  /** May clients load and unload by name? */
  readonly explicitControl: boolean;
  readonly strictReadiness: boolean;
  readonly autoComplete: boolean;
  readonly backends: readonly Backend[];
  readonly backendConfig: (backend: string) => ReadonlyMap<string, string>;
  /** The server's own repositories. */
  readonly catalog: Catalog;
  /** A catalog over one registered archive. */
  readonly catalogOf: (source: NamespaceSource) => Catalog;
  readonly arenaBytes: number;
  readonly namespaceArenaBytes: number;
  readonly memoryBudgetBytes: number | null;
  readonly queueLengthMax: number;
  readonly loadsMax: number;
  readonly metrics: EngineMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

const learnedCostsMax = 10_000;

/** Makes the engine with nothing loaded. Closing it unloads everything and gives the shared memory back. */
export function createEngine(options: EngineOptions): EngineCore {
  return new EngineCore(options);
}

export class EngineCore implements Engine, AsyncDisposable {
  readonly #options: EngineOptions;
  readonly #table = new ModelTable();
  readonly #spaces = new Map<string, LoadSpace & { readonly served: string }>();
  readonly #budget: MemoryBudget;
  readonly #loader: ModelLoader;
  readonly #observers: VersionObservers;
  readonly #draining = new Set<Promise<void>>();
  #exiting = false;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#budget = new MemoryBudget(options.memoryBudgetBytes, learnedCostsMax);
    this.#observers = new VersionObservers(options.metrics);
    const own: LoadSpace = {
      namespace: "",
      catalog: options.catalog,
      arena: createArena({ capacityBytes: options.arenaBytes }),
    };
    this.#spaces.set("", { ...own, served: "" });
    this.#loader = new ModelLoader({
      table: this.#table,
      backends: new Map(options.backends.map((backend) => [backend.name, backend])),
      backendConfig: options.backendConfig,
      autoComplete: options.autoComplete,
      budget: this.#budget,
      clock: options.clock,
      log: options.log,
      scheduler: (config, version, made) =>
        schedulerFor(config, made, {
          modelVersion: String(version),
          clock: options.clock,
          queueLengthMax: options.queueLengthMax,
        }),
      observer: (opened) => this.#observers.open(opened),
      retired: (namespace, name, version) => this.#observers.close(namespace, name, version),
      background: (work) => this.#background(work),
    });
  }

  get live(): boolean {
    return !this.#exiting;
  }

  /** Strict: every version known is ready and healthy, or was unloaded on purpose. */
  get ready(): boolean {
    if (this.#exiting) return false;
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

  infer(request: InferenceRequest): Promise<InferenceResponse> {
    let serving: ServingVersion;
    try {
      if (this.#exiting) throw new InferenceError("UNAVAILABLE", "Server not ready");
      serving = this.#lookup(request.namespace, request.modelName, request.modelVersion);
    } catch (error) {
      releaseTensors(request.inputs);
      return Promise.reject(error);
    }
    return serving.infer(request);
  }

  bodyArena(namespace: string, modelName: string): Arena | null {
    const latest = this.#table.entry(namespace, modelName)?.latest ?? null;
    return latest === null ? null : (this.#spaces.get(namespace)?.arena ?? null);
  }

  #lookup(namespace: string, name: string, version: string): ServingVersion {
    return this.#table.require(namespace, name).lookup(version);
  }

  modelReady(namespace: string, modelName: string, modelVersion: string): boolean {
    return this.#lookup(namespace, modelName, modelVersion).health.unhealthy === null;
  }

  serverMetadata() {
    return { name: this.#options.id, version: this.#options.version, extensions: serverExtensions };
  }

  modelMetadata(namespace: string, modelName: string, modelVersion: string): ModelMetadata {
    const entry = this.#table.require(namespace, modelName);
    const serving = entry.lookup(modelVersion);
    const versions = modelVersion === "" ? entry.ready().map(({ version }) => String(version)) : [serving.version];
    return modelMetadata(serving.config, serving.facts, versions);
  }

  modelConfigJson(namespace: string, modelName: string, modelVersion: string): unknown {
    return printConfigJson(this.#lookup(namespace, modelName, modelVersion).config);
  }

  outputLabels(namespace: string, modelName: string, modelVersion: string, output: string): readonly string[] {
    return this.#lookup(namespace, modelName, modelVersion).labels.get(output) ?? [];
  }

  statistics(modelName: string, modelVersion: string): readonly ModelStatistics[] {
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
    this.#requireExplicit();
    await this.#loader.load(this.#space(""), modelName, { override, ancestors: [], signal });
  }

  /** See Backend.warmUp. */
  async warmUp(): Promise<void> {
    await Promise.all(this.#options.backends.map((backend) => backend.warmUp()));
  }

  /** At start: everything in the repositories, or the names given; resolves with the names that failed. */
  async loadAtStart(names: readonly string[] | "all", signal: AbortSignal): Promise<readonly string[]> {
    const wanted = names === "all" ? (await this.#options.catalog.names()).map((each) => each.name) : names;
    const queue = [...wanted];
    const failed: string[] = [];
    const worker = async (): Promise<void> => {
      for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
        try {
          await this.#loader.load(this.#space(""), name, { override: null, ancestors: [], signal });
        } catch (error) {
          signal.throwIfAborted();
          this.#options.log.error(InferenceError.from(error).message);
          failed.push(name);
        }
      }
    };
    await Promise.all(Array.from({ length: this.#options.loadsMax }, worker));
    return failed;
  }

  unloadModel(modelName: string, unloadDependents: boolean): Promise<void> {
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
    const space = {
      namespace: source.namespace,
      catalog: this.#options.catalogOf(source),
      arena: createArena({ capacityBytes: this.#options.namespaceArenaBytes }),
      served: source.servedName,
    };
    this.#spaces.set(source.namespace, space);
    try {
      await this.#loader.load(space, source.servedName, { override: null, ancestors: [], signal });
    } catch (error) {
      await this.closeNamespace(source.namespace);
      throw error;
    }
  }

  async closeNamespace(namespace: string): Promise<void> {
    const space = this.#spaces.get(namespace);
    if (space === undefined || namespace === "")
      throw new InferenceError("NOT_FOUND", `model repository '${namespace}' is not registered`);
    const served = await Promise.all(
      this.#table.entries(namespace).map((entry) => entry.inTurn(() => Promise.resolve(takeReady(entry)))),
    );
    // Not in their turns: a step ends after the ensembles made of it.
    await Promise.all(
      served.flat().map(async ({ serving }) => {
        await serving[Symbol.asyncDispose]();
        this.#observers.close(namespace, serving.facts.name, Number(serving.version));
      }),
    );
    this.#table.remove(namespace);
    this.#spaces.delete(namespace);
    space.arena[Symbol.dispose]();
  }

  memory(namespace?: string) {
    const usedBytes = namespace === undefined ? this.#budget.usedBytes : this.#budget.usedBytesOf(namespace);
    return { usedBytes, budgetBytes: this.#budget.budgetBytes };
  }

  #space(namespace: string): LoadSpace {
    const space = this.#spaces.get(namespace);
    if (space === undefined) throw new InferenceError("NOT_FOUND", `model namespace '${namespace}' is not registered`);
    return space;
  }

  #requireExplicit(): void {
    if (!this.#options.explicitControl)
      throw new InferenceError("UNAVAILABLE", "explicit model load / unload is not allowed if polling is enabled");
  }

  #background(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => this.#options.log.error(`unloading failed: ${InferenceError.from(error).message}`))
      .finally(() => this.#draining.delete(tracked));
    this.#draining.add(tracked);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#exiting = true;
    for (const namespace of this.#spaces.keys()) if (namespace !== "") await this.closeNamespace(namespace);
    const own = this.#space("");
    for (const entry of this.#table.entries("")) this.#loader.unload(entry, false);
    while (this.#draining.size > 0) await Promise.all(this.#draining);
    for (const backend of this.#options.backends) await backend[Symbol.asyncDispose]();
    own.arena[Symbol.dispose]();
  }
}

/** Takes a model's versions out of service; they are the caller's to end. */
function takeReady(entry: ModelEntry) {
  const ready = entry.ready();
  for (const { version } of ready) entry.move(version, { at: "unloading" });
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
