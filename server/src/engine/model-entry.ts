import { InferenceError } from "../base/index.ts";
import type { ServingVersion } from "./serving-version.ts";

/**
 * The life of one model version. `draining` is a version that was replaced or unloaded and still answers those already inside;
 * `unavailable` keeps the reason that the index and load errors tell.
 */
export type VersionState =
  | { readonly at: "loading" }
  | { readonly at: "ready"; readonly serving: ServingVersion; unhealthy: string | null }
  | { readonly at: "unloading" }
  | { readonly at: "unavailable"; readonly reason: string };

/** Everything the server knows of one name in one namespace. */
export class ModelEntry {
  readonly namespace: string;
  readonly name: string;
  readonly #versions = new Map<number, VersionState>();
  /** The highest ready one: what an unversioned request means. */
  #latest: ServingVersion | null = null;
  /** Serialises loads and unloads of this name. */
  #turn: Promise<void> = Promise.resolve();
  /** Ensembles that need this model while they are loaded, and whether anyone asked for it by name. */
  readonly dependents = new Set<ModelEntry>();
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

  ready(): { readonly version: number; readonly serving: ServingVersion; readonly unhealthy: string | null }[] {
    const ready = [];
    for (const [version, state] of this.#versions) {
      if (state.at === "ready") ready.push({ version, serving: state.serving, unhealthy: state.unhealthy });
    }
    return ready.sort((a, b) => a.version - b.version);
  }

  /** Runs `work` after every earlier load or unload of this name. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.then(
      () => {},
      () => {},
    );
    return result;
  }

  /** The version a request means, or the original's lookup errors. */
  lookup(modelVersion: string): ServingVersion {
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
    if (entry === undefined) throw new InferenceError("NOT_FOUND", `Request for unknown model: '${name}' is not found`);
    return entry;
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
