import { InferenceError, SerialQueue } from "@galatea/base";
import { composingModels } from "../repository/index.ts";
import type { CatalogModel } from "./catalog.ts";
import type { ServingVersion } from "./serving-version.ts";

/**
 * The state of one model version. `unloading`: running requests complete. `unavailable`: the reason is reported by the index and by load
 * errors. Version -1 stands for a model without a known version; `absent` means that the version policy selects no version on disk, and
 * Triton's index omits such a model.
 */
export type VersionState =
  | { readonly at: "loading" }
  | { readonly at: "ready"; readonly serving: ServingVersion }
  | { readonly at: "unloading" }
  | { readonly at: "unavailable"; readonly reason: string }
  | { readonly at: "absent" };

/**
 * The configuration with which an ensemble was last loaded. The ensemble is rebuilt from it, without reading the disk, whenever one of its
 * steps has changed.
 */
export interface EnsembleRecipe {
  readonly found: CatalogModel;
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

/** The versions, dependents and pending loads of one model name in one namespace. */
export class ModelEntry {
  readonly namespace: string;
  readonly name: string;
  readonly #versions = new Map<number, VersionState>();
  /** The highest ready version, which serves unversioned requests. */
  #latest: ServingVersion | null = null;
  /** Runs loads and unloads of this name one after another. */
  readonly #queue = new SerialQueue();
  /** Ensembles that have this model as a step, whether they serve or wait for it. */
  readonly dependents = new Set<ModelEntry>();
  /** The recipe of an ensemble, from its load until it is unloaded by its own name; set by `ModelTable.setRecipe`. */
  recipe: EnsembleRecipe | null = null;
  /** Models that the load in progress waits for. */
  awaitedSteps: readonly string[] = [];
  /** Aborts the load in progress; null when there is none. */
  loading: AbortController | null = null;
  /** True if a client has loaded this model by name since its last unload. */
  explicitlyLoaded = false;

  constructor(namespace: string, name: string) {
    this.namespace = namespace;
    this.name = name;
  }

  get versions(): ReadonlyMap<number, VersionState> {
    return this.#versions;
  }

  get latest(): ServingVersion | null {
    return this.#latest;
  }

  /** Sets the state of a version; every transition goes through this method. */
  setState(version: number, state: VersionState): void {
    this.#versions.set(version, state);
    this.#latest = null;
    let highest = -1;
    for (const [number, each] of this.#versions) {
      if (each.at === "ready" && number > highest) {
        highest = number;
        this.#latest = each.serving;
      }
    }
  }

  forget(version: number): void {
    this.setState(version, { at: "unloading" });
    this.#versions.delete(version);
  }

  /** True if the entry holds no information: no versions, dependents, recipe or pending loads. */
  get isEmpty(): boolean {
    return this.#versions.size === 0 && this.dependents.size === 0 && this.recipe === null && this.#queue.count === 0;
  }

  ready(): { readonly version: number; readonly serving: ServingVersion }[] {
    const ready = [];
    for (const [version, state] of this.#versions) {
      if (state.at === "ready") ready.push({ version, serving: state.serving });
    }
    return ready.sort((a, b) => a.version - b.version);
  }

  /** True while a load or unload of this name is running or queued. */
  get isBusy(): boolean {
    return this.#queue.count > 0;
  }

  /** Runs `work` after all earlier loads and unloads of this name. */
  enqueue<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.run(work);
  }

  /** Returns the version that a request selects. Throws Triton's lookup errors. */
  lookup(modelVersion: string): ServingVersion {
    if (this.#versions.size === 0) throw neverSeen(this.name);
    if (modelVersion === "" || modelVersion === "-1") {
      if (this.#latest !== null) return this.#latest;
      throw new InferenceError("NOT_FOUND", `Request for unknown model: '${this.name}' has no available versions`);
    }
    const state = this.#versions.get(Number(modelVersion));
    if (state?.at === "ready") return state.serving;
    if (state === undefined)
      throw new InferenceError(
        "NOT_FOUND",
        `Request for unknown model: '${this.name}' version ${modelVersion} is not found`,
      );
    throw new InferenceError(
      "UNAVAILABLE",
      `Request for unknown model: '${this.name}' version ${modelVersion} is not at ready state`,
    );
  }
}

function neverSeen(name: string): InferenceError {
  return new InferenceError("NOT_FOUND", `Request for unknown model: '${name}' is not found`);
}

/** Entries by namespace and name. */
export class ModelTable {
  readonly #namespaces = new Map<string, Map<string, ModelEntry>>();

  entry(namespace: string, name: string): ModelEntry | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  entryOrNew(namespace: string, name: string): ModelEntry {
    let models = this.#namespaces.get(namespace);
    if (models === undefined) {
      models = new Map();
      this.#namespaces.set(namespace, models);
    }
    let entry = models.get(name);
    if (entry === undefined) {
      entry = new ModelEntry(namespace, name);
      models.set(name, entry);
    }
    return entry;
  }

  /** Returns the entry of a name. Throws NOT_FOUND when the name was never requested. */
  require(namespace: string, name: string): ModelEntry {
    const entry = this.entry(namespace, name);
    if (entry === undefined) throw neverSeen(name);
    return entry;
  }

  /** Sets the recipe of an ensemble and registers the ensemble with its steps. Null removes both. */
  setRecipe(entry: ModelEntry, recipe: EnsembleRecipe | null): void {
    const before = entry.recipe === null ? [] : composingModels(entry.recipe.found.config);
    const after = recipe === null ? [] : composingModels(recipe.found.config);
    entry.recipe = recipe;
    for (const name of after) this.entryOrNew(entry.namespace, name).dependents.add(entry);
    for (const name of before) {
      const step = this.entry(entry.namespace, name);
      if (step === undefined || after.includes(name)) continue;
      step.dependents.delete(entry);
      this.removeEmpty(step);
    }
  }

  /** Removes the entry if it holds no information. Without this, requests for names that do not exist would accumulate entries. */
  removeEmpty(entry: ModelEntry): void {
    if (entry.isEmpty && this.entry(entry.namespace, entry.name) === entry)
      this.#namespaces.get(entry.namespace)?.delete(entry.name);
  }

  entries(namespace: string): readonly ModelEntry[] {
    return [...(this.#namespaces.get(namespace)?.values() ?? [])];
  }

  get namespaces(): readonly string[] {
    return [...this.#namespaces.keys()];
  }

  remove(namespace: string): void {
    this.#namespaces.delete(namespace);
  }
}
