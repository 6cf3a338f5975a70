import { InferenceError, inferenceCodeText, type InferenceReason } from "@galatea/base";
import { checkConfig, checkFoundConfig, rejectUnsupported } from "../modelconfig/index.ts";
import { composingModels, ignoredDirectoryWarning, versionFailedText } from "../repository/index.ts";
import type { NamespaceMetrics } from "../backends/index.ts";
import type { Arena } from "../tensor/index.ts";
import { VersionBuilder, type BuilderDependencies, type BuiltVersion } from "./built-version.ts";
import type { Catalog, CatalogModel } from "./catalog.ts";
import type { LoadOverride } from "./engine.ts";
import { dependencyCycle } from "./ensemble-graph.ts";
import { readLabels } from "./labels.ts";
import { CircularDependency, LoadFailure, pollError, noVersionError, stepFailure } from "./load-failures.ts";
import type { EnsembleRecipe, ModelEntry } from "./model-entry.ts";
import { VersionExchange, type VersionExchangeDependencies } from "./version-exchange.ts";

/** The repositories of a namespace and the memory that its models share. */
export interface LoadSpace {
  readonly namespace: string;
  readonly catalog: Catalog;
  readonly arena: Arena;
  readonly metrics: NamespaceMetrics;
}

/** Options of a load; `ancestors` are the ensembles that need the model as a step. */
interface LoadOptions {
  readonly override: LoadOverride | null;
  readonly ancestors: readonly ModelEntry[];
  readonly signal: AbortSignal;
}

export type LoaderDependencies = BuilderDependencies & VersionExchangeDependencies;

/**
 * Loads and unloads models. All versions of a load are put into service together. The previous versions stay in service until then, and
 * also if one of the new versions fails.
 */
export class ModelLoader {
  readonly #dependencies: LoaderDependencies;
  readonly #builder: VersionBuilder;
  readonly #exchange: VersionExchange;

  constructor(dependencies: LoaderDependencies) {
    this.#dependencies = dependencies;
    this.#builder = new VersionBuilder(dependencies);
    this.#exchange = new VersionExchange(dependencies);
  }

  async load(space: LoadSpace, name: string, options: LoadOptions): Promise<void> {
    const entry = this.#dependencies.table.entryOrNew(space.namespace, name);
    const isStep = options.ancestors.length > 0;
    if (options.ancestors.includes(entry)) {
      const names = [...options.ancestors.map((each) => each.name), name];
      throw new CircularDependency(names.slice(names.indexOf(name)));
    }
    try {
      await entry.enqueue(async () => {
        // Another ensemble may have loaded the step while this load waited in the queue.
        if (isStep && entry.latest !== null) return;
        if (!isStep) entry.explicitlyLoaded = true;
        const loading = new AbortController();
        entry.loading = loading;
        try {
          const signal = AbortSignal.any([options.signal, loading.signal]);
          await this.#loadVersions(space, entry, { ...options, signal });
        } finally {
          entry.loading = null;
        }
      });
    } finally {
      this.#dependencies.table.removeEmpty(entry);
    }
  }

  async #loadVersions(space: LoadSpace, entry: ModelEntry, options: LoadOptions): Promise<void> {
    const found = await this.#find(space, entry, options.override);
    for (const { version } of found.versions) {
      if (entry.versions.get(version)?.at !== "ready") entry.setState(version, { at: "loading" });
    }
    try {
      await (found.config.scheduling.kind === "ensemble"
        ? this.#loadEnsemble(space, entry, found, options)
        : this.#loadModel(space, entry, found, options.signal));
    } catch (thrown) {
      for (const { version } of found.versions) {
        if (entry.versions.get(version)?.at === "loading")
          entry.setState(version, { at: "unavailable", reason: InferenceError.from(thrown).message });
      }
      throw thrown;
    }
  }

  async #find(space: LoadSpace, entry: ModelEntry, override: LoadOverride | null): Promise<CatalogModel> {
    let found: CatalogModel;
    try {
      found = await space.catalog.find(entry.name, override);
      checkFoundConfig(found.config);
    } catch (thrown) {
      const error = InferenceError.from(thrown);
      this.#dependencies.log.error(`failed to load '${entry.name}': ${error.message}`);
      throw pollError(entry.name, error);
    }
    for (const name of found.misnamedVersions)
      this.#dependencies.log.warning(`model '${entry.name}': ${ignoredDirectoryWarning(name)}`);
    if (found.versions.length > 0) return found;
    if (isUnknownYet(entry)) entry.setState(-1, { at: "absent" });
    const refused = noVersionError(found);
    this.#dependencies.log.error(refused.message.trimEnd());
    throw refused;
  }

  async #loadModel(space: LoadSpace, entry: ModelEntry, found: CatalogModel, signal: AbortSignal): Promise<void> {
    const built: BuiltVersion[] = [];
    const failures: string[] = [];
    let reason: InferenceReason | null = null;
    try {
      for (const { version, directory } of found.versions) {
        const source = { ...found, version, versionDirectory: directory };
        const { namespace, arena, metrics } = space;
        try {
          built.push(await this.#builder.build({ namespace, arena, metrics, source, config: found.config, signal }));
        } catch (thrown) {
          const error = InferenceError.from(thrown);
          failures.push(this.#versionFailure(entry, version, error));
          reason ??= error.reason;
          // An error of the server's memory budget is reported unchanged.
          if (error.code === "UNAVAILABLE" && error.reason === "out-of-memory") throw error;
        }
      }
      if (failures.length > 0) throw new LoadFailure(entry.name, failures.join(""), { reason });
    } catch (error) {
      this.#exchange.discard(entry, built);
      throw error;
    }
    this.#exchange.replace(entry, built);
  }

  /**
   * Logs a failed version and returns its sentence for the load's error. The model index reports the failure too, unless a previous load of
   * the version is still in service.
   */
  #versionFailure(entry: ModelEntry, version: number, error: InferenceError): string {
    const reason = `${inferenceCodeText[error.code]}: ${error.message}`;
    this.#dependencies.log.error(`failed to load '${entry.name}' version ${version}: ${reason}`);
    if (entry.versions.get(version)?.at !== "ready") entry.setState(version, { at: "unavailable", reason });
    return versionFailedText(version, error);
  }

  async #loadEnsemble(space: LoadSpace, entry: ModelEntry, found: CatalogModel, options: LoadOptions): Promise<void> {
    const [recipe] = await Promise.allSettled([recipeOf(found)]);
    // Without this, steps that become ready now would start the ensemble from its previous recipe.
    if (entry.latest === null) this.#dependencies.table.setRecipe(entry, null);
    entry.awaitedSteps = composingModels(found.config);
    try {
      await this.#namingNoVersion(entry, found, () => this.#refuseCircle(entry, found));
      await this.#namingNoVersion(entry, found, async () => {
        try {
          await this.#loadSteps(space, entry, options);
          if (recipe.status === "fulfilled") this.#exchange.compose(entry, recipe.value);
          else this.#exchange.stepsOf(entry, found.config);
        } catch (error) {
          // The ensemble stays registered, and starts when the missing step has been loaded.
          if (entry.latest === null && recipe.status === "fulfilled")
            this.#dependencies.table.setRecipe(entry, recipe.value);
          throw error;
        }
      });
    } finally {
      entry.awaitedSteps = [];
    }
    if (recipe.status === "fulfilled") return;
    const error = InferenceError.from(recipe.reason);
    const failures = found.versions.map(({ version }) => this.#versionFailure(entry, version, error));
    throw new LoadFailure(entry.name, failures.join(""), { cause: error });
  }

  /** Runs checks of an ensemble against its steps. A failure is logged without a version, as in Triton. */
  async #namingNoVersion(entry: ModelEntry, found: CatalogModel, work: () => void | Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      const error = InferenceError.from(thrown);
      this.#dependencies.log.error(`failed to load '${entry.name}': ${error.message}`);
      const reason = `${inferenceCodeText[error.code]}: ${error.message}`;
      for (const { version } of found.versions) {
        if (entry.versions.get(version)?.at !== "ready") entry.setState(version, { at: "unavailable", reason });
      }
      if (error.code === "UNAVAILABLE") throw error;
      const options = { cause: error, reason: error.reason };
      throw new LoadFailure(entry.name, error.message, options);
    }
  }

  /** Rejects an ensemble that uses itself. Loads in progress count as well: two ensembles that wait for each other would wait for ever. */
  #refuseCircle(entry: ModelEntry, found: CatalogModel): void {
    const circle = dependencyCycle(entry.name, composingModels(found.config), (name) => {
      const step = this.#dependencies.table.entry(entry.namespace, name);
      if (step === undefined) return [];
      return [...step.awaitedSteps, ...(step.recipe === null ? [] : composingModels(step.recipe.found.config))];
    });
    if (circle !== null) throw new CircularDependency(circle);
  }

  async #loadSteps(space: LoadSpace, entry: ModelEntry, options: LoadOptions): Promise<void> {
    const names = entry.awaitedSteps;
    const ancestors = [...options.ancestors, entry];
    const steps = await Promise.allSettled(
      names.map((name) => this.load(space, name, { override: null, ancestors, signal: options.signal })),
    );
    steps.forEach((step, i) => {
      if (step.status === "rejected")
        throw stepFailure(entry.name, names[i] as string, InferenceError.from(step.reason));
    });
  }

  /**
   * Unloads a model and the ensembles that use it. Those ensembles return to service when the model is loaded again. `unloadDependents`
   * also unloads the steps that were loaded only for this ensemble.
   */
  unload(entry: ModelEntry, unloadDependents: boolean): void {
    const steps = entry.recipe === null ? [] : composingModels(entry.recipe.found.config);
    entry.explicitlyLoaded = false;
    this.#limitLoad(entry);
    this.#exchange.withdraw(entry);
    if (!unloadDependents) return;
    for (const name of steps) {
      const step = this.#dependencies.table.entry(entry.namespace, name);
      if (step !== undefined && step.dependents.size === 0 && !step.explicitlyLoaded) this.unload(step, true);
    }
  }

  /** Limits a load whose model was unloaded meanwhile to the drain time, because the load may hang in the model's own code. */
  #limitLoad(entry: ModelEntry): void {
    const { loading } = entry;
    if (loading === null) return;
    const { clock, drainMsMax } = this.#dependencies;
    const work = entry.enqueue(() => Promise.resolve());
    const timer = clock.timer(drainMsMax, () => {
      const message = `model '${entry.name}' was unloaded while it loaded, and its load did not end within ${drainMsMax / 1000} s`;
      loading.abort(new InferenceError("UNAVAILABLE", message));
    });
    this.#dependencies.background(work.finally(() => timer[Symbol.dispose]()));
  }
}

/** Returns the recipe of an ensemble, with its label files read. */
async function recipeOf(found: CatalogModel): Promise<EnsembleRecipe> {
  rejectUnsupported(found.config);
  checkConfig(found.config);
  return { found, labels: await readLabels(found.modelDirectory, found.config) };
}

/** Returns whether no version of the model is known. An entry that contains only the reason of a failed load counts as unknown. */
function isUnknownYet(entry: ModelEntry): boolean {
  return entry.versions.size === 0 || entry.versions.has(-1);
}
