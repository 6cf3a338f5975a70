import { InferenceError, type Clock } from "@galatea/base";
import type { Engine } from "../../engine/index.ts";
import { parseModelPath, resolveModelPath } from "./model-path.ts";

/** Finds the directory of an unpacked archive that is the model, and its repository; the command passes it in. */
export type ChooseModelDirectory = (
  directory: string,
) => Promise<{ readonly repositoryDirectory: string; readonly modelDirectoryName: string }>;

export interface HostedModelsOptions {
  readonly engine: Engine;
  /** The directory that replaces /opt/ml. */
  readonly mlRoot: string;
  readonly chooseModelDirectory: ChooseModelDirectory;
  readonly clock: Clock;
  readonly modelsMax: number;
}

/** One archive of a multi-model endpoint, by the id it was registered under. */
export interface HostedModel {
  readonly id: string;
  readonly url: string;
  /** The name that clients' requests carry (X-Amzn-SageMaker-Target-Model), else the id. */
  readonly servedName: string;
}

/** The cost of a load, reported to the platform. */
export interface LoadCost {
  readonly milliseconds: number;
  /** Bytes that the engine charges the archive's models with. */
  readonly memoryBytes: number;
}

type ModelState =
  | { readonly at: "loading"; readonly model: HostedModel; readonly settled: Promise<unknown> }
  | { readonly at: "loaded"; readonly model: HostedModel }
  | { readonly at: "unloading"; readonly model: HostedModel; readonly settled: Promise<unknown> };

/** The loaded archives, each in its own namespace. Calls for one id wait for its pending load or unload. */
export class HostedModels {
  readonly #options: HostedModelsOptions;
  readonly #states = new Map<string, ModelState>();

  constructor(options: HostedModelsOptions) {
    this.#options = options;
  }

  /** Returns the loaded model of this id; undefined while it loads or unloads. */
  loaded(id: string): HostedModel | undefined {
    const state = this.#states.get(id);
    return state?.at === "loaded" ? state.model : undefined;
  }

  list(): readonly HostedModel[] {
    const models: HostedModel[] = [];
    for (const state of this.#states.values()) if (state.at === "loaded") models.push(state.model);
    return models;
  }

  /** Loads the archive at `url`. ALREADY_EXISTS when the id is loaded; otherwise the engine's error. */
  async load(model: HostedModel, signal: AbortSignal): Promise<LoadCost> {
    const path = parseModelPath(model.url);
    await this.#settled(model.id);
    signal.throwIfAborted();
    if (this.#states.has(model.id)) {
      throw new InferenceError("ALREADY_EXISTS", `model repository '${model.url}' has already been registered`);
    }
    if (this.#states.size >= this.#options.modelsMax) {
      throw new InferenceError(
        "UNAVAILABLE",
        `Out of memory: ${this.#options.modelsMax} models are registered already`,
        { reason: "out-of-memory" },
      );
    }
    const opening = this.#open(model, resolveModelPath(this.#options.mlRoot, path, model.url), signal);
    this.#states.set(model.id, { at: "loading", model, settled: opening.catch(() => {}) });
    try {
      const cost = await opening;
      this.#states.set(model.id, { at: "loaded", model });
      return cost;
    } catch (error) {
      this.#states.delete(model.id);
      throw error;
    }
  }

  async #open(model: HostedModel, directory: Promise<string>, signal: AbortSignal): Promise<LoadCost> {
    const { engine, clock, chooseModelDirectory } = this.#options;
    const chosen = await chooseModelDirectory(await directory);
    const startedNs = clock.monotonicNs();
    await engine.openNamespace({ namespace: model.id, servedName: model.servedName, ...chosen }, signal);
    return {
      milliseconds: (clock.monotonicNs() - startedNs) / 1e6,
      memoryBytes: engine.memory(model.id).usedBytes,
    };
  }

  /** Unloads the model and resolves when its memory is free; false when it is not loaded. */
  async unload(id: string, check: (model: HostedModel) => void): Promise<boolean> {
    await this.#settled(id);
    const state = this.#states.get(id);
    if (state === undefined) return false;
    check(state.model);
    const closing = this.#options.engine.closeNamespace(id);
    this.#states.set(id, { at: "unloading", model: state.model, settled: closing.catch(() => {}) });
    try {
      await closing;
      this.#states.delete(id);
    } catch (error) {
      this.#states.set(id, { at: "loaded", model: state.model });
      throw error;
    }
    return true;
  }

  async #settled(id: string): Promise<void> {
    for (let state = this.#states.get(id); state !== undefined && state.at !== "loaded"; state = this.#states.get(id)) {
      await state.settled;
    }
  }
}
