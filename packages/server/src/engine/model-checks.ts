import { InferenceError, silentLogger, type Clock } from "@galatea/base";
import {
  findBackend,
  noNamespaceMetrics,
  noBlsClient,
  type Backend,
  type ModelCheck,
  type ModelSource,
} from "../backends/index.ts";
import { placedInstances, type ModelConfig, type PlacedInstance } from "../modelconfig/index.ts";
import type { BackendCheck, CheckedByBackend, FoundModel, VersionProblem } from "../repository/index.ts";
import { createArena, type Arena } from "../tensor/index.ts";
import { readLabels } from "./labels.ts";
import { openModel } from "./open-model.ts";
import { checkWarmUps } from "./warm-up.ts";

/** Bytes of address space for warm-up samples. Memory is used only for the bytes of a sample. */
const arenaBytes = 2 ** 32;

export interface ModelChecksOptions {
  /** The server's backends; disposing the checks disposes them. */
  readonly backends: readonly Backend[];
  readonly backendConfig: (backend: string) => ReadonlyMap<string, string>;
  /** Number of GPUs on which models may be placed. */
  readonly gpuCount: number;
  readonly clock: Clock;
}

/** Checks models as a server with these backends loads them, without running their code. */
export class ModelChecks implements AsyncDisposable {
  /** The reasons of checks that could not run. */
  readonly notes = new Set<string>();
  readonly #options: ModelChecksOptions;
  readonly #arena: Arena = createArena({ capacityBytes: arenaBytes });

  constructor(options: ModelChecksOptions) {
    this.#options = options;
  }

  readonly check: BackendCheck = async (found): Promise<CheckedByBackend> => {
    const sources = sourcesOf(found);
    const unlabelled = await labelError(found);
    // The label files are checked first, as in a load.
    if (unlabelled !== null) {
      const problems = sources.map(({ version }) => ({ version, error: unlabelled }));
      return { problems, completion: found.config };
    }
    const { problems, completion } = await this.#checked(found.config, sources);
    const newest = sources.at(-1);
    if (newest === undefined) return { problems, completion };
    const wrong = await this.#warmUpProblems(newest, found.config, completion);
    return { problems: [...problems, ...wrong.map((error) => ({ version: newest.version, error }))], completion };
  };

  async #checked(config: ModelConfig, sources: readonly ModelSource[]): Promise<CheckedByBackend> {
    if (config.platform === "ensemble") return { problems: [], completion: config };
    const problems: VersionProblem[] = [];
    let completion: ModelConfig | null = null;
    for (const source of sources) {
      const check = await this.#checkedVersion(source, config);
      for (const error of check.problems) problems.push({ version: source.version, error });
      for (const note of check.notes) this.notes.add(note);
      completion = check.completion;
    }
    return { problems, completion };
  }

  async #checkedVersion(source: ModelSource, config: ModelConfig): Promise<ModelCheck> {
    let backend: Backend;
    try {
      backend = await findBackend(this.#options.backends, config.backend, source);
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      // UNAVAILABLE is a fault of the machine, not of the model.
      const [problems, notes] = error.code === "UNAVAILABLE" ? [[], [error.message]] : [[error], []];
      const isDescribed = config.inputs.length > 0 && config.outputs.length > 0;
      return { problems, notes, completion: isDescribed ? config : null };
    }
    if (backend.check !== undefined) return await backend.check(source, config);
    try {
      const { config: completion, model } = await openModel(
        backend,
        { source, config, autoComplete: true },
        this.#context(config),
      );
      await model[Symbol.asyncDispose]();
      return { problems: [], notes: [], completion };
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      return { problems: [error], notes: [], completion: null };
    }
  }

  #context({ backend }: ModelConfig) {
    return {
      arena: this.#arena,
      backendConfig: this.#options.backendConfig(backend),
      onHealth: () => {},
      bls: noBlsClient,
      metrics: noNamespaceMetrics,
      signal: new AbortController().signal,
    };
  }

  async #warmUpProblems(source: ModelSource, found: ModelConfig, completion: ModelConfig | null) {
    return await checkWarmUps(
      {
        namespace: "",
        arena: this.#arena,
        source,
        config: completion ?? found,
        clock: this.#options.clock,
        log: silentLogger,
        fillRandom: () => {},
        signal: new AbortController().signal,
      },
      completion === null ? null : this.#placed(completion),
    );
  }

  /** Returns the instances of a model; none when they cannot be placed, which the backend's check reports. */
  #placed(config: ModelConfig): readonly PlacedInstance[] {
    try {
      return placedInstances(config, this.#options.gpuCount);
    } catch (error) {
      if (!(error instanceof InferenceError)) throw error;
      return [];
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const backend of this.#options.backends) await backend[Symbol.asyncDispose]();
    this.#arena[Symbol.dispose]();
  }
}

/** Returns why the label files of a model cannot be read; null when they can. */
async function labelError({ modelDirectory, config }: FoundModel): Promise<InferenceError | null> {
  try {
    await readLabels(modelDirectory, config);
    return null;
  } catch (error) {
    return InferenceError.from(error);
  }
}

function sourcesOf({ servedName, modelDirectory, versions }: FoundModel): readonly ModelSource[] {
  return versions.map(({ version, directory }) => ({
    servedName,
    modelDirectory,
    version,
    versionDirectory: directory,
  }));
}
