import { InferenceError, assert, type Clock, type Logger } from "@galatea/base";
import type { RequestRecord } from "../inference/index.ts";
import { checkEnsembleModels, type ModelConfig } from "../modelconfig/index.ts";
import type { Scheduler } from "../scheduling/index.ts";
import type { BuiltVersion } from "./built-version.ts";
import type { CallGraph } from "./call-graph.ts";
import { dependentEnsembles } from "./ensemble-graph.ts";
import { missingVersionError, missingStepError } from "./load-failures.ts";
import type { EnsembleRecipe, ModelEntry, ModelTable, VersionState } from "./model-entry.ts";
import type { OpenedVersion } from "./observers.ts";
import type { RequestObserver } from "./request-observer.ts";
import type { Composition } from "./create-scheduler.ts";
import { ServingVersion } from "./serving-version.ts";

export interface VersionExchangeDependencies {
  readonly table: ModelTable;
  readonly clock: Clock;
  readonly calls: CallGraph;
  /** Time in milliseconds that an unload waits for requests and for the model's own code. */
  readonly drainMsMax: number;
  readonly log: Logger;
  readonly scheduler: (config: ModelConfig, version: number, created: Composition) => Scheduler;
  readonly observer: (opened: OpenedVersion) => RequestObserver;
  /** Called after a version's statistics and metrics were removed. */
  readonly onRetired: (namespace: string, name: string, version: number) => void;
  /** Takes ownership of work that continues after a load or unload has returned, such as draining a replaced version. */
  readonly background: (work: Promise<void>) => void;
}

/** The versions that an ensemble's steps would run on, and the ensemble's configuration completed from theirs. */
export interface ComposedEnsemble {
  readonly config: ModelConfig;
  readonly steps: readonly ServingVersion[];
}

/**
 * Puts versions into service and takes them out of service. An exchange is synchronous: a request sees a model and every ensemble that uses
 * it, either all before the exchange or all after it. A replaced version completes its requests in the background. A replaced step stays
 * loaded until the ensembles that use it have ended.
 */
export class VersionExchange {
  readonly #dependencies: VersionExchangeDependencies;

  constructor(dependencies: VersionExchangeDependencies) {
    this.#dependencies = dependencies;
  }

  /** Replaces all previous versions of a model by the built ones. */
  replace(entry: ModelEntry, built: readonly BuiltVersion[]): void {
    for (const each of built) this.#open(entry, each, { kind: "model", model: each.model });
    for (const { version } of entry.ready()) {
      if (!built.some((each) => each.version === version)) this.#retireVersion(entry, version);
    }
    // The name may have belonged to an ensemble before: its recipe is removed.
    this.#dependencies.table.setRecipe(entry, null);
    this.#settle(entry);
  }

  /** Returns the current steps of an ensemble. Throws when a step is absent or does not fit. */
  stepsOf(entry: ModelEntry, config: ModelConfig): ComposedEnsemble {
    assert(config.scheduling.kind === "ensemble", `${config.name} is an ensemble`);
    const steps = config.scheduling.steps.map(({ modelName, modelVersion }) => {
      const step = this.#dependencies.table.entry(entry.namespace, modelName);
      const latest = step?.latest ?? null;
      if (step === undefined || latest === null) throw missingStepError(entry.name, modelName);
      if (modelVersion === -1) return latest;
      const state = step.versions.get(modelVersion);
      if (state?.at !== "ready") throw missingVersionError(entry.name, modelName, modelVersion);
      return state.serving;
    });
    const names = config.scheduling.steps.map((step) => step.modelName);
    const composing = new Map(names.map((name, i) => [name, (steps[i] as ServingVersion).config]));
    return { config: checkEnsembleModels(config, composing), steps };
  }

  /**
   * Puts an ensemble into service with the current versions of its steps. Throws and changes nothing when a step is absent or does not fit.
   */
  compose(entry: ModelEntry, recipe: EnsembleRecipe): void {
    this.#openEnsemble(entry, recipe, this.stepsOf(entry, recipe.found.config));
    const { versions } = recipe.found;
    for (const { version } of entry.ready()) {
      if (!versions.some((each) => each.version === version)) this.#retireVersion(entry, version);
    }
    this.#dependencies.table.setRecipe(entry, recipe);
    this.#settle(entry);
  }

  /**
   * Takes a model and the ensembles that use it out of service. Those ensembles return to service when the model is loaded again, unless
   * they are unloaded themselves.
   */
  withdraw(entry: ModelEntry): void {
    const isEnsemble = entry.recipe !== null;
    this.#dependencies.table.setRecipe(entry, null);
    for (const [version, state] of entry.versions) {
      if (state.at === "ready") this.#retireVersion(entry, version);
      // An ensemble that waited for its steps is now unloaded.
      else if (isEnsemble && state.at === "unavailable")
        entry.setState(version, { at: "unavailable", reason: "unloaded" });
    }
    this.#settle(entry);
  }

  /** Disposes built versions that will not go into service. */
  discard(entry: ModelEntry, built: readonly BuiltVersion[]): void {
    for (const { version, model } of built) {
      const state: VersionState = { at: "unloading" };
      if (entry.versions.get(version)?.at !== "ready") entry.setState(version, state);
      const ended = () => {
        if (entry.versions.get(version) === state) entry.setState(version, { at: "unavailable", reason: "unloaded" });
      };
      this.#dependencies.background(Promise.resolve(model[Symbol.asyncDispose]()).then(ended));
    }
  }

  /**
   * Rebuilds the ensembles that use a model whose ready versions have changed. If a step of an ensemble is absent or does not fit, the
   * ensemble is out of service until the steps are present and fit.
   */
  #settle(entry: ModelEntry): void {
    for (const ensemble of dependentEnsembles(entry)) {
      const { recipe } = ensemble;
      assert(recipe !== null, `ensemble '${ensemble.name}' depends on '${entry.name}'`);
      try {
        this.#openEnsemble(ensemble, recipe, this.stepsOf(ensemble, recipe.found.config));
      } catch (thrown) {
        const served = ensemble.ready();
        for (const { version } of served) this.#retireVersion(ensemble, version);
        if (served.length > 0) this.#dependencies.log.warning(InferenceError.from(thrown).message);
      }
    }
  }

  #openEnsemble(entry: ModelEntry, { found, labels }: EnsembleRecipe, { config, steps }: ComposedEnsemble): void {
    for (const { version } of found.versions) {
      this.#open(
        entry,
        { version, config, labels, loadNs: 0, health: { unhealthy: null }, warmUps: [], bls: null },
        { kind: "ensemble", steps },
      );
    }
  }

  #open(entry: ModelEntry, built: Omit<BuiltVersion, "model">, created: Composition): void {
    const { version, config, labels, health, loadNs, warmUps } = built;
    const scheduler = this.#dependencies.scheduler(config, version, created);
    const observer = this.#dependencies.observer({
      namespace: entry.namespace,
      config,
      version,
      loadNs,
      pendingCount: () => scheduler.pendingCount,
    });
    const { clock } = this.#dependencies;
    for (const record of warmUps) observer.succeeded(record, endOf(record), clock.epochMs());
    const serving = new ServingVersion({
      config,
      version,
      model: created.kind === "model" ? created.model : null,
      steps: created.kind === "ensemble" ? created.steps : [],
      health,
      labels,
      scheduler,
      observer,
      clock,
      calls: this.#dependencies.calls,
      bls: built.bls,
      drainMsMax: this.#dependencies.drainMsMax,
    });
    const before = entry.versions.get(version);
    entry.setState(version, { at: "ready", serving });
    if (entry.versions.has(-1)) entry.forget(-1);
    if (before?.at === "ready")
      this.#dependencies.background(
        before.serving[Symbol.asyncDispose]().then(() => this.#logUnloaded(entry, version)),
      );
    this.#dependencies.log.info(`successfully loaded '${entry.name}' version ${version}`);
  }

  #retireVersion(entry: ModelEntry, version: number): void {
    const before = entry.versions.get(version);
    assert(before?.at === "ready", `'${entry.name}' version ${version} serves`);
    const unloading: VersionState = { at: "unloading" };
    entry.setState(version, unloading);
    const ended = () => {
      const now = entry.versions.get(version);
      if (now === unloading) entry.setState(version, { at: "unavailable", reason: "unloaded" });
      // A version that is in service again by now keeps its counts, as after a reload.
      if (now?.at !== "ready") this.#dependencies.onRetired(entry.namespace, entry.name, version);
      this.#logUnloaded(entry, version);
    };
    this.#dependencies.background(before.serving[Symbol.asyncDispose]().then(ended));
  }

  /** Logs one line for each unloaded version, as Triton does. A version that a reload replaces is logged too. */
  #logUnloaded(entry: ModelEntry, version: number): void {
    this.#dependencies.log.info(`successfully unloaded '${entry.name}' version ${version}`);
  }
}

function endOf({ startedNs, computeInputNs, computeInferNs, computeOutputNs }: RequestRecord): number {
  return startedNs + computeInputNs + computeInferNs + computeOutputNs;
}
