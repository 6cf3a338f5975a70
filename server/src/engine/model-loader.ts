import { InferenceError, assert, inferenceCodeText, type Clock, type Logger } from "../base/index.ts";
import type { Backend, LoadContext, LoadedModel, ModelSource } from "../backends/index.ts";
import {
  checkConfig,
  checkEnsembleModels,
  checkFoundConfig,
  refuseUnbuilt,
  type ModelConfig,
} from "../modelconfig/index.ts";
import type { Scheduler } from "../scheduling/index.ts";
import type { Arena } from "../tensor/index.ts";
import type { Catalog, CatalogModel } from "./catalog.ts";
import { chargedModel, ensembleOf } from "./composition.ts";
import type { LoadOverride } from "./engine.ts";
import { readLabels } from "./labels.ts";
import { loadFailed, notPolled, stepFailure } from "./load-failures.ts";
import { contentOf } from "./model-content.ts";
import type { ChargeOwner, MemoryBudget } from "./memory-budget.ts";
import type { ModelEntry, ModelTable } from "./model-entry.ts";
import type { OpenedVersion } from "./observers.ts";
import type { RequestObserver } from "./request-observer.ts";
import type { Composition } from "./scheduler-for.ts";
import { ServingVersion } from "./serving-version.ts";

/** A namespace as the loader sees it: where its models lie and the memory they share. */
export interface LoadSpace {
  readonly namespace: string;
  readonly catalog: Catalog;
  readonly arena: Arena;
}

export interface LoaderParts {
  readonly table: ModelTable;
  readonly backends: ReadonlyMap<string, Backend>;
  readonly backendConfig: (backend: string) => ReadonlyMap<string, string>;
  readonly autoComplete: boolean;
  readonly budget: MemoryBudget;
  readonly clock: Clock;
  readonly log: Logger;
  readonly scheduler: (space: LoadSpace, config: ModelConfig, version: number, made: Composition) => Scheduler;
  readonly observer: (opened: OpenedVersion) => RequestObserver;
  /** Told when a version's rows of statistics and metrics go. */
  readonly retired: (space: LoadSpace, name: string, version: number) => void;
  /** Owns what goes on after a load or unload has answered (draining). */
  readonly background: (work: Promise<void>) => void;
}

/** Brings models up and down. A reload serves the old version until the new one is ready; a failed one keeps the old. */
export class ModelLoader {
  readonly #parts: LoaderParts;
  /** Models whose backend shares memory between equal ones, by their charge. */
  readonly #sharing = new Map<ChargeOwner, LoadedModel>();

  constructor(parts: LoaderParts) {
    this.#parts = parts;
  }

  /** `ancestors` are the ensembles on whose behalf this load happens. */
  async load(
    space: LoadSpace,
    name: string,
    options: { override: LoadOverride | null; ancestors: readonly ModelEntry[]; signal: AbortSignal },
  ): Promise<ModelEntry> {
    const entry = this.#parts.table.entryOrNew(space.namespace, name);
    if (options.ancestors.includes(entry)) {
      const circle = [...options.ancestors.map((each) => each.name), name].join(" -> ");
      throw new InferenceError("INVALID_ARG", `circular dependency between ensembles: ${circle}`);
    }
    await entry.inTurn(async () => {
      // A step that another ensemble brought up while this one waited its turn is there already.
      if (options.ancestors.length > 0 && entry.latest !== null) return;
      await this.#loadVersions(space, entry, options);
    });
    const parent = options.ancestors.at(-1);
    if (parent === undefined) entry.explicitlyLoaded = true;
    else entry.dependents.add(parent);
    return entry;
  }

  async #loadVersions(
    space: LoadSpace,
    entry: ModelEntry,
    options: { override: LoadOverride | null; ancestors: readonly ModelEntry[]; signal: AbortSignal },
  ): Promise<void> {
    const found = await this.#find(space, entry, options.override);
    for (const { version } of found.versions) {
      if (entry.versions.get(version)?.at !== "ready") entry.move(version, { at: "loading" });
    }
    const composing = await this.#composing(space, entry, found, options);
    const failures: string[] = [];
    for (const { version, directory } of found.versions) {
      const before = entry.versions.get(version);
      try {
        const source = { ...found, version, versionDirectory: directory };
        await this.#loadVersion(space, entry, source, { config: found.config, composing, signal: options.signal });
      } catch (thrown) {
        const error = InferenceError.from(thrown);
        const reason = `${inferenceCodeText[error.code]}: ${error.message}`;
        this.#parts.log.error(`failed to load '${entry.name}' version ${version}: ${reason}`);
        if (before?.at !== "ready") entry.move(version, { at: "unavailable", reason });
        failures.push(`version ${version} is at UNAVAILABLE state: ${reason};\n`);
        if (error.code === "UNAVAILABLE" && error.message.startsWith("Out of memory")) throw error;
      }
    }
    for (const { version } of entry.ready()) {
      if (!found.versions.some((wanted) => wanted.version === version)) this.retire(space, entry, version, "unloaded");
    }
    if (failures.length > 0) throw new InferenceError("INVALID_ARG", `${loadFailed(entry.name)}${failures.join("")}`);
  }

  async #find(space: LoadSpace, entry: ModelEntry, override: LoadOverride | null): Promise<CatalogModel> {
    try {
      const found = await space.catalog.find(entry.name, override);
      checkFoundConfig(found.config);
      return found;
    } catch (thrown) {
      const error = InferenceError.from(thrown);
      this.#parts.log.error(`failed to load '${entry.name}': ${error.message}`);
      if (override !== null && error.message.startsWith("Invalid config override")) throw error;
      if (entry.latest === null && error.code !== "NOT_FOUND")
        entry.move(-1, { at: "unavailable", reason: error.message });
      throw new InferenceError("INTERNAL", `${notPolled(entry.name)}: ${error.message}`, { cause: error });
    }
  }

  async #loadVersion(
    space: LoadSpace,
    entry: ModelEntry,
    source: ModelSource,
    load: { config: ModelConfig; composing: ReadonlyMap<string, ModelConfig> | null; signal: AbortSignal },
  ): Promise<void> {
    const { config: found, composing } = load;
    const startNs = this.#parts.clock.monotonicNs();
    const { version } = source;
    const context: LoadContext = {
      arena: space.arena,
      backendConfig: this.#parts.backendConfig(found.backend),
      signal: load.signal,
      onHealth: (health) => {
        const state = entry.versions.get(version);
        if (state?.at === "ready") state.unhealthy = health.ok ? null : health.reason;
        if (!health.ok) this.#parts.log.error(`model '${entry.name}' version ${version}: ${health.reason}`);
      },
    };
    // Before anything is made that would have to be ended again.
    const labels = await readLabels(source.modelDirectory, found);
    const { config, made } =
      composing !== null ? ensembleOf(found, composing) : await this.#backendModel(entry, source, found, context);
    const scheduler = this.#parts.scheduler(space, config, version, made);
    const serving = new ServingVersion({
      config,
      version,
      model: made.kind === "model" ? made.model : null,
      labels,
      scheduler,
      observer: this.#parts.observer({
        namespace: space.namespace,
        config,
        version,
        loadNs: this.#parts.clock.monotonicNs() - startNs,
        pendingCount: () => scheduler.pendingCount,
      }),
      clock: this.#parts.clock,
    });
    const before = entry.versions.get(version);
    entry.move(version, { at: "ready", serving, unhealthy: null });
    if (entry.versions.has(-1)) entry.forget(-1);
    if (before?.at === "ready") this.#drain(before.serving);
    this.#parts.log.info(`successfully loaded '${entry.name}' version ${version}`);
  }

  async #backendModel(
    entry: ModelEntry,
    source: ModelSource,
    found: ModelConfig,
    context: LoadContext,
  ): Promise<{ config: ModelConfig; made: Composition }> {
    const backend = this.#parts.backends.get(found.backend);
    if (backend === undefined) {
      const known = [...this.#parts.backends.keys()].join(", ");
      throw new InferenceError(
        "INVALID_ARG",
        `unable to find backend library for backend '${found.backend}', try specifying runtime on the model configuration. ` +
          `This server has: ${known}.`,
      );
    }
    const content = await contentOf(source, found);
    const charge: ChargeOwner = { namespace: entry.namespace };
    const what = `model '${entry.name}' version ${source.version}`;
    const knownBytes = await backend.estimateBytes(source, found);
    this.#parts.budget.reserve(charge, what, { knownBytes, contentKey: content.key, guessBytes: content.guessBytes });
    try {
      const config = this.#parts.autoComplete ? await backend.complete(source, found, context) : found;
      refuseUnbuilt(config);
      checkConfig(config);
      const model = await backend.load(source, config, context);
      try {
        this.#parts.budget.settle(charge, what, content.key, await model.memoryBytes());
      } catch (error) {
        await model[Symbol.asyncDispose]();
        throw error;
      }
      if (knownBytes !== null) this.#sharing.set(charge, model);
      const charged = chargedModel(model, () => this.#uncharge(charge));
      return { config, made: { kind: "model", model: charged } };
    } catch (error) {
      this.#parts.budget.release(charge);
      throw error;
    }
  }

  /** What the model held alone goes; memory it shared is charged to another holder from now on. */
  async #uncharge(charge: ChargeOwner): Promise<void> {
    this.#parts.budget.release(charge);
    if (!this.#sharing.delete(charge)) return;
    for (const [other, model] of this.#sharing) this.#parts.budget.correct(other, await model.memoryBytes());
  }

  /**
   * Brings the steps of an ensemble up and gives their configurations by name; null for any other model. What is wrong between an
   * ensemble and its steps is no version's fault, and the original's texts name none.
   */
  async #composing(
    space: LoadSpace,
    entry: ModelEntry,
    found: CatalogModel,
    options: { ancestors: readonly ModelEntry[]; signal: AbortSignal },
  ): Promise<ReadonlyMap<string, ModelConfig> | null> {
    if (found.config.scheduling.kind !== "ensemble") return null;
    try {
      const composing = await this.#loadSteps(space, entry, found.config, options);
      checkEnsembleModels(found.config, composing);
      return composing;
    } catch (thrown) {
      const error = InferenceError.from(thrown);
      this.#parts.log.error(`failed to load '${entry.name}': ${error.message}`);
      const reason = `${inferenceCodeText[error.code]}: ${error.message}`;
      for (const { version } of found.versions) {
        if (entry.versions.get(version)?.at !== "ready") entry.move(version, { at: "unavailable", reason });
      }
      if (error.code === "UNAVAILABLE") throw error;
      throw new InferenceError("INVALID_ARG", `${loadFailed(entry.name)}${error.message}\n`, { cause: error });
    }
  }

  async #loadSteps(
    space: LoadSpace,
    entry: ModelEntry,
    config: ModelConfig,
    options: { ancestors: readonly ModelEntry[]; signal: AbortSignal },
  ): Promise<ReadonlyMap<string, ModelConfig>> {
    assert(config.scheduling.kind === "ensemble", `${config.name} is an ensemble`);
    const names = [...new Set(config.scheduling.steps.map((step) => step.modelName))];
    const ancestors = [...options.ancestors, entry];
    const composing = new Map<string, ModelConfig>();
    const steps = await Promise.allSettled(
      names.map(async (name) => {
        const step = await this.load(space, name, { override: null, ancestors, signal: options.signal });
        const latest = step.latest;
        if (latest !== null) composing.set(name, latest.config);
      }),
    );
    steps.forEach((step, i) => {
      if (step.status === "rejected")
        throw stepFailure(config.name, names[i] as string, InferenceError.from(step.reason));
    });
    return composing;
  }

  /** Takes one version out of service now; those inside finish in the background. */
  retire(space: LoadSpace, entry: ModelEntry, version: number, reason: string): void {
    const state = entry.versions.get(version);
    if (state?.at !== "ready") return;
    entry.move(version, { at: "unloading" });
    this.#drain(state.serving, () => {
      if (entry.versions.get(version)?.at === "unloading") entry.move(version, { at: "unavailable", reason });
      this.#parts.retired(space, entry.name, version);
      this.#parts.log.info(`successfully unloaded '${entry.name}' version ${version}`);
    });
  }

  #drain(serving: ServingVersion, then: () => void = () => {}): void {
    this.#parts.background(serving[Symbol.asyncDispose]().then(then));
  }

  /** Unloads a model and the ensembles that need it; with `unloadDependents` also the steps that only it brought in. */
  unload(space: LoadSpace, entry: ModelEntry, unloadDependents: boolean): void {
    entry.explicitlyLoaded = false;
    for (const { version } of entry.ready()) this.retire(space, entry, version, "unloaded");
    for (const dependent of entry.dependents) {
      for (const { version } of dependent.ready())
        this.retire(space, dependent, version, `model '${entry.name}' was unloaded`);
    }
    entry.dependents.clear();
    if (!unloadDependents) return;
    for (const step of this.#parts.table.entries(space.namespace)) {
      if (!step.dependents.delete(entry)) continue;
      if (step.dependents.size === 0 && !step.explicitlyLoaded) this.unload(space, step, true);
    }
  }
}
