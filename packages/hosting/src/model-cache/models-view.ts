import { ModelDemand } from "./model-demand.ts";

/** The state of a model's copy in a container. `coming`: the copy is loading or requested. */
export type ModelCopyState = "loaded" | "coming" | "absent";

/** A snapshot of one version of a model on one instance. */
export interface ModelState {
  readonly id: string;
  readonly target: string;
  readonly isLoaded: boolean;
  readonly isLoading: boolean;
  /** True if the next request for the target gets this version. */
  readonly isCurrent: boolean;
  /** Bytes of memory, excluding contents that models share. */
  readonly ownBytes: number;
  /** Bytes of memory, including all shared contents. */
  readonly wholeBytes: number;
  /** Number of requests that use this version or wait for it. */
  readonly pinCount: number;
  /** Monotonic time in nanoseconds at which a request last started or ended. */
  readonly usedNs: number;
}

/** The memory of all models of a container. */
export interface ModelsMemory {
  readonly usedBytes: number;
  readonly capacityBytes: number;
}

/** A model in a view. Its request count is mutable, because each request changes it twice. */
type ViewedModel = ModelState & { pinCount: number; usedNs: number };

/**
 * The loaded and loading models of one container, updated by the container's events. Routing reads this view
 * synchronously.
 */
export class ModelsView {
  /** If false, a model is unloaded after its last request. */
  readonly keepsModels: boolean;
  /** The pending requests of this process to the container. */
  readonly demand = new ModelDemand();
  /** By id, least recently used first. */
  readonly #models = new Map<string, ViewedModel>();
  readonly #current = new Map<string, ViewedModel>();
  #loadedCount = 0;
  #memory: ModelsMemory = { usedBytes: 0, capacityBytes: 0 };

  constructor({ keepsModels }: { readonly keepsModels: boolean }) {
    this.keepsModels = keepsModels;
  }

  get loadedCount(): number {
    return this.#loadedCount;
  }

  /** Returns loaded models, least recently used first. */
  loadedModels(): readonly ModelState[] {
    return [...this.#models.values()].filter(({ isLoaded }) => isLoaded);
  }

  /** Returns the state of the copy that the next request for the model uses. */
  copyOf(target: string): ModelCopyState {
    const model = this.#current.get(target);
    if (model?.isLoaded === true) return "loaded";
    return this.demand.of(target) > 0 || model?.isLoading === true ? "coming" : "absent";
  }

  /** Returns true if the model has at least the average number of pending requests. */
  isBusyWith(target: string): boolean {
    return this.demand.isMostlyFor(target);
  }

  /** Returns the memory of a loaded model, shared contents included; 0 for a model that is not loaded. */
  memoryBytesOf(target: string): number {
    return this.#current.get(target)?.wholeBytes ?? 0;
  }

  /** Returns true if a model of this size fits without evicting a model that was used after `unusedSinceNs`. */
  hasMemoryFor(bytes: number, unusedSinceNs: number): boolean {
    const { capacityBytes } = this.#memory;
    let { usedBytes } = this.#memory;
    for (const { isLoaded, pinCount, usedNs, ownBytes } of this.#models.values()) {
      if (usedBytes + bytes <= capacityBytes) return true;
      if (!isLoaded || pinCount > 0) continue;
      if (usedNs > unusedSinceNs) return false;
      // An eviction is assumed to free only `ownBytes`, because other models may keep the shared contents in memory.
      usedBytes -= ownBytes;
    }
    return usedBytes + bytes <= capacityBytes;
  }

  changed(state: ModelState): void {
    const { id, target } = state;
    const model = { ...state };
    const before = this.#models.get(id);
    this.#loadedCount += Number(model.isLoaded) - Number(before?.isLoaded ?? false);
    if (model.isLoaded || model.isLoading) this.#models.set(id, model);
    else this.#models.delete(id);
    if (model.isCurrent && this.#models.has(id)) this.#current.set(target, model);
    else if (this.#current.get(target)?.id === id) this.#current.delete(target);
  }

  /** Records that a request for the model started or ended. */
  used(id: string, pinCount: number, usedNs: number): void {
    const model = this.#models.get(id);
    if (model === undefined) return;
    if (pinCount > model.pinCount) {
      this.#models.delete(id);
      this.#models.set(id, model);
    }
    model.pinCount = pinCount;
    model.usedNs = usedNs;
  }

  resized(memory: ModelsMemory): void {
    this.#memory = memory;
  }

  /** Removes all models, before a complete state replaces them. */
  clear(): void {
    this.#models.clear();
    this.#current.clear();
    this.#loadedCount = 0;
  }
}
