import { type Clock } from "../../base/index.ts";
import type { ModelConfig } from "../../modelconfig/index.ts";
import type { Backend, LoadContext, LoadedModel, ModelSource } from "../backend.ts";
import { type DeviceBytes, onMachine } from "../device-bytes.ts";
import type { AlgorithmName } from "./algorithm-models.ts";
import { AlgorithmThread, type HeldAlgorithm } from "./algorithm-thread.ts";
import { algorithmInstance } from "./algorithm-instance.ts";

export interface AlgorithmBackendOptions {
  readonly algorithm: AlgorithmName;
  /** Whether each model has a thread of its own: where a request's work is not bounded by its length. */
  readonly threadPerModel: boolean;
  /** Reading a model, or answering a request, may take so long. */
  readonly orderMsMax: number;
  readonly clock: Clock;
}

/** What a thread takes beside its models. */
const threadBytes = 8 * 2 ** 20;

/** Models of one of SageMaker's algorithms, with the one input `body` and the one output `answer`. */
export function createAlgorithmBackend(options: AlgorithmBackendOptions): Backend {
  return new AlgorithmBackend(options);
}

class AlgorithmBackend implements Backend {
  readonly name: string;
  readonly #options: AlgorithmBackendOptions;
  readonly #shared: AlgorithmThread | null;

  constructor(options: AlgorithmBackendOptions) {
    this.name = options.algorithm;
    this.#options = options;
    this.#shared = options.threadPerModel ? null : new AlgorithmThread(options);
  }

  complete(_source: ModelSource, config: ModelConfig): Promise<ModelConfig> {
    return Promise.resolve(config);
  }

  estimateBytes(): Promise<null> {
    return Promise.resolve(null);
  }

  async load(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<LoadedModel> {
    const { algorithm, clock } = this.#options;
    const thread = this.#shared ?? new AlgorithmThread(this.#options);
    const own = thread === this.#shared ? null : thread;
    let held: HeldAlgorithm;
    try {
      const settings = Object.fromEntries(config.parameters);
      held = await thread.load({ algorithm, directory: source.versionDirectory, settings }, context.signal);
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
          held,
          arena: context.arena,
          clock,
        }),
      ],
      memoryBytes: (): Promise<DeviceBytes> =>
        Promise.resolve(onMachine(held.memoryBytes + (own === null ? 0 : threadBytes))),
      async [Symbol.asyncDispose]() {
        await held[Symbol.asyncDispose]();
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
