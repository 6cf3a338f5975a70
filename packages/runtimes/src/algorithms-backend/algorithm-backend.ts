import type { Clock } from "@galatea/base";
import type { ModelConfig } from "@galatea/server/modelconfig";
import type { Backend, LoadContext, LoadedModel, ModelSource } from "@galatea/server/backends";
import { type DeviceBytes, machineBytes } from "@galatea/server/backends";
import type { AlgorithmName } from "./algorithm-models.ts";
import { AlgorithmThreads, type LoadedAlgorithm } from "./algorithm-threads.ts";
import { algorithmInstance } from "./algorithm-instance.ts";

export interface AlgorithmBackendOptions {
  readonly algorithm: AlgorithmName;
  /** True if each model has its own thread, because even a short request may take unbounded time and must not block other models. */
  readonly threadPerModel: boolean;
  /** Time limit, in milliseconds, of loading a model and of handling one request. */
  readonly commandMsMax: number;
  /** Number of threads that are started before two models share a thread. */
  readonly processorCount: number;
  readonly clock: Clock;
}

/** Duration of a command after which its thread counts as slow. Most commands take less than a millisecond. */
const slowAfterMs = 100;
/** Threads in addition to one per processor, for models whose own thread is slow; `threadsMax` limits the total. */
const threadsForOthers = 2;
const threadsMax = 8;

/** Memory of a thread without its models. */
const threadBytes = 8 * 2 ** 20;

/** Creates a backend of one of SageMaker's algorithms, whose models have the input `body` and the output `answer`. */
export function createAlgorithmBackend(options: AlgorithmBackendOptions): Backend {
  return new AlgorithmBackend(options);
}

class AlgorithmBackend implements Backend {
  readonly name: string;
  readonly #options: AlgorithmBackendOptions;
  readonly #shared: AlgorithmThreads | null;

  constructor(options: AlgorithmBackendOptions) {
    this.name = options.algorithm;
    this.#options = options;
    this.#shared = options.threadPerModel ? null : this.#threads(options.processorCount + threadsForOthers);
  }

  #threads(most: number): AlgorithmThreads {
    const { processorCount, ...options } = this.#options;
    return new AlgorithmThreads({ ...options, slowAfterMs, spread: processorCount, most: Math.min(most, threadsMax) });
  }

  complete(_source: ModelSource, config: ModelConfig): Promise<ModelConfig> {
    return Promise.resolve(config);
  }

  estimateBytes(): Promise<null> {
    return Promise.resolve(null);
  }

  async load(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<LoadedModel> {
    const { algorithm, clock } = this.#options;
    const threads = this.#shared ?? this.#threads(1);
    const own = threads === this.#shared ? null : threads;
    let loaded: LoadedAlgorithm;
    try {
      const settings = Object.fromEntries(config.parameters);
      loaded = await threads.load({ algorithm, directory: source.versionDirectory, settings }, context.signal);
    } catch (error) {
      await own?.[Symbol.asyncDispose]();
      throw error;
    }
    const version = String(source.version);
    return {
      instances: [
        algorithmInstance({
          name: `${config.name}_0`,
          modelName: config.name,
          version,
          loaded,
          arena: context.arena,
          clock,
        }),
      ],
      memoryBytes: (): Promise<DeviceBytes> =>
        Promise.resolve(machineBytes(loaded.memoryBytes + (own === null ? 0 : threadBytes))),
      async [Symbol.asyncDispose]() {
        await loaded[Symbol.asyncDispose]();
        await own?.[Symbol.asyncDispose]();
      },
    };
  }

  warmUp(): Promise<void> {
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shared?.[Symbol.asyncDispose]();
  }
}
