import { ModelDemand } from "./model-demand.ts";

/** What an instance has of a model for its next request: in memory, on its way there, or not. */
export type ModelCopy = "loaded" | "coming" | "absent";

/** One version of a model on one instance, as it is after a change. */
export interface ModelState {
  readonly id: string;
  readonly target: string;
  readonly isLoaded: boolean;
  readonly isLoading: boolean;
  /** Whether the next request for the target gets this version. */
  readonly isCurrent: boolean;
  /** Memory without what it shares with others. */
  readonly ownBytes: number;
  /** Memory with all it shares. */
  readonly wholeBytes: number;
  /** Requests that use it or wait for it. */
  readonly pinCount: number;
  /** By the monotonic clock: when a request last came or went. */
  readonly usedNs: number;
}

/** The memory of a container's models together. */
export interface ModelsMemory {
  readonly usedBytes: number;
  readonly capacityBytes: number;
}

/** The models of one container as its events tell: those that are loaded, or on their way. Routing reads it synchronously. */
export class ModelsView {
  /** Otherwise each goes after the request that it was loaded for. */
  readonly keepsModels: boolean;
  /** The requests of this client. */
  readonly demand = new ModelDemand();
  /** By id, least recently used first. */
  readonly #models = new Map<string, ModelState>();
  readonly #current = new Map<string, ModelState>();
  #loadedCount = 0;
  #memory: ModelsMemory = { usedBytes: 0, capacityBytes: 0 };

  constructor({ keepsModels }: { readonly keepsModels: boolean }) {
    this.keepsModels = keepsModels;
  }

  get loadedCount(): number {
    return this.#loadedCount;
  }

  /** Least recently used first. */
  loadedModels(): ModelState[] {
    return [...this.#models.values()].filter(({ isLoaded }) => isLoaded);
  }

  /** The copy that a request for the model finds. */
  copyOf(target: string): ModelCopy {
    const model = this.#current.get(target);
    if (model?.isLoaded === true) return "loaded";
    return this.demand.of(target) > 0 || model?.isLoading === true ? "coming" : "absent";
  }

  /** Whether there are as many requests for it here as for the others on average, or more. */
  isBusyWith(target: string): boolean {
    return this.demand.isMostlyFor(target);
  }

  /** What a loaded model holds in memory, with what it shares; zero for others. */
  memoryBytesOf(target: string): number {
    return this.#current.get(target)?.wholeBytes ?? 0;
  }

  /** Whether a model of so many bytes could come without one going that was used since. */
  hasRoomFor(bytes: number, unusedSinceNs: number): boolean {
    const { capacityBytes } = this.#memory;
    let { usedBytes } = this.#memory;
    for (const { isLoaded, pinCount, usedNs, ownBytes } of this.#models.values()) {
      if (usedBytes + bytes <= capacityBytes) return true;
      if (!isLoaded || pinCount > 0) continue;
      if (usedNs > unusedSinceNs) return false;
      // What it shares with others may stay: a guess on the safe side.
      usedBytes -= ownBytes;
    }
    return usedBytes + bytes <= capacityBytes;
  }

  changed(model: ModelState): void {
    const { id, target } = model;
    const before = this.#models.get(id);
    this.#loadedCount += Number(model.isLoaded) - Number(before?.isLoaded ?? false);
    if (model.isLoaded || model.isLoading) this.#models.set(id, model);
    else this.#models.delete(id);
    if (model.isCurrent && this.#models.has(id)) this.#current.set(target, model);
    else if (this.#current.get(target)?.id === id) this.#current.delete(target);
  }

  /** A request for it has come or gone. */
  used(id: string, pinCount: number, usedNs: number): void {
    const before = this.#models.get(id);
    if (before === undefined) return;
    const model = { ...before, pinCount, usedNs };
    if (pinCount > before.pinCount) this.#models.delete(id);
    this.#models.set(id, model);
    if (model.isCurrent) this.#current.set(model.target, model);
  }

  resized(memory: ModelsMemory): void {
    this.#memory = memory;
  }

  /** Before what is there is told anew. */
  clear(): void {
    this.#models.clear();
    this.#current.clear();
    this.#loadedCount = 0;
  }
}
