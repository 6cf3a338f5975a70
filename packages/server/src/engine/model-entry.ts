import { InferenceError, SerialQueue } from "@galatea/base";
import { composingModels } from "../repository/index.ts";
import type { CatalogModel } from "./catalog.ts";
import type { ServingVersion } from "./serving-version.ts";

/**
 * The life of one model version. `unloading` still answers those already inside; `unavailable` keeps the reason that the index
 * and load errors tell. Version -1 stands for a model none of whose versions is known: `absent` where its policy wants none of
 * those on disk, which Triton's index leaves out.
 */
export type VersionState =
  | { readonly at: "loading" }
  | { readonly at: "ready"; readonly serving: ServingVersion }
  | { readonly at: "unloading" }
  | { readonly at: "unavailable"; readonly reason: string }
  | { readonly at: "absent" };

/** How an ensemble was last asked for; it is made from this, without the disk, whenever one of its steps has changed. */
export interface EnsembleRecipe {
  readonly found: CatalogModel;
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

/** Everything the server knows of one name in one namespace. */
export class ModelEntry {
  readonly namespace: string;
  readonly name: string;
  readonly #versions = new Map<number, VersionState>();
  /** The highest ready one: what an unversioned request means. */
  #latest: ServingVersion | null = null;
  /** Serialises loads and unloads of this name. */
  readonly #turns = new SerialQueue();
  /** Ensembles whose recipe names this model, whether they serve or wait for it. */
  readonly dependents = new Set<ModelEntry>();
  /** Of an ensemble that was loaded and not unloaded by its own name; `ModelTable.wish` sets it. */
  recipe: EnsembleRecipe | null = null;
  /** Models that a load in progress waits for. */
  awaitedSteps: readonly string[] = [];
  /** Ends the load in progress; null where there is none. */
  loading: AbortController | null = null;
  /** Whether anyone asked for it by name since it was last unloaded. */
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

  /** The one function that moves a version. */
  move(version: number, state: VersionState): void {
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
    this.move(version, { at: "unloading" });
    this.#versions.delete(version);
  }

  /** Nobody could tell it from a name never seen. */
  get blank(): boolean {
    return this.#versions.size === 0 && this.dependents.size === 0 && this.recipe === null && this.#turns.count === 0;
  }

  ready(): { readonly version: number; readonly serving: ServingVersion }[] {
    const ready = [];
    for (const [version, state] of this.#versions) {
      if (state.at === "ready") ready.push({ version, serving: state.serving });
    }
    return ready.sort((a, b) => a.version - b.version);
  }

  /** Whether a load or unload of this name is under way. */
  get isBusy(): boolean {
    return this.#turns.count > 0;
  }

  /** Runs `work` after every earlier load or unload of this name. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#turns.run(work);
  }

  /** The version a request means, or Triton's lookup errors. */
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

/** Names to entries, by namespace. */
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

  /** NOT_FOUND for a name never seen. */
  require(namespace: string, name: string): ModelEntry {
    const entry = this.entry(namespace, name);
    if (entry === undefined) throw neverSeen(name);
    return entry;
  }

  /** Says what an ensemble is to be made of (null: it is not wanted any more), and tells its steps. */
  wish(entry: ModelEntry, recipe: EnsembleRecipe | null): void {
    const before = entry.recipe === null ? [] : composingModels(entry.recipe.found.config);
    const after = recipe === null ? [] : composingModels(recipe.found.config);
    entry.recipe = recipe;
    for (const name of after) this.entryOrNew(entry.namespace, name).dependents.add(entry);
    for (const name of before) {
      const step = this.entry(entry.namespace, name);
      if (step === undefined || after.includes(name)) continue;
      step.dependents.delete(entry);
      this.forgetBlank(step);
    }
  }

  /** Names that were only ever asked for do not pile up. */
  forgetBlank(entry: ModelEntry): void {
    if (entry.blank && this.entry(entry.namespace, entry.name) === entry)
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
