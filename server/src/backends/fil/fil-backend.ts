import { join } from "node:path";
import { InferenceError, type Logger } from "../../base/index.ts";
import type { Execution, Instance, Released } from "../../inference/index.ts";
import { SentAnswers } from "../../inference/index.ts";
import type { ModelConfig } from "../../modelconfig/index.ts";
import type { Backend, LoadContext, LoadedModel, ModelSource } from "../backend.ts";
import { ConvertedModels } from "./converted-models.ts";
import { type FilParameters, readFilParameters } from "./fil-parameters.ts";
import { readTensors } from "./plan-answer.ts";

export interface FilBackendOptions {
  /** Runs what the trees are converted to; it outlives this backend, and is not closed by it. */
  readonly onnx: Backend;
  readonly onnxConfig: ReadonlyMap<string, string>;
  /** Of this backend alone: converted models lie there while they are loaded. */
  readonly directory: string;
  readonly log: Logger;
}

/** `fil`: models of decision trees, converted to ONNX and run as such. */
export function createFilBackend(options: FilBackendOptions): Backend {
  return new FilBackend(options);
}

class FilBackend implements Backend {
  readonly name = "fil";
  readonly #options: FilBackendOptions;
  readonly #converted: ConvertedModels;

  constructor(options: FilBackendOptions) {
    this.#options = options;
    this.#converted = new ConvertedModels(options.directory);
  }

  /** Configurations of this backend are complete or wrong: the files do not tell whether a model classifies. */
  complete(_source: ModelSource, config: ModelConfig): Promise<ModelConfig> {
    return Promise.resolve(config);
  }

  estimateBytes(): Promise<null> {
    return Promise.resolve(null);
  }

  async load(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<LoadedModel> {
    const { onnx, onnxConfig, log } = this.#options;
    const parameters = readFilParameters(config);
    for (const key of parameters.withoutEffect) {
      log.warning(`model '${config.name}': parameter '${key}' is for GPUs and has no effect here`);
    }
    const asked = readTensors(config);
    const modelPath = join(source.versionDirectory, parameters.fileName);
    const converted = await this.#converted.lease({ modelPath, parameters, asked });
    try {
      context.signal.throwIfAborted();
      const { directory } = converted.session;
      const within = { ...source, versionDirectory: directory };
      const loaded = await onnx.load(within, asOnnx(config, parameters), { ...context, backendConfig: onnxConfig });
      return withFilShapes(loaded, converted);
    } catch (error) {
      await converted[Symbol.asyncDispose]();
      throw error;
    }
  }

  warmUp(): Promise<void> {
    return this.#options.onnx.warmUp();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#converted[Symbol.asyncDispose]();
  }
}

/** The same tensors, batches and instances; this backend's parameters are none of the other's. */
function asOnnx(config: ModelConfig, { threadCount }: FilParameters): ModelConfig {
  return {
    ...config,
    backend: "onnxruntime",
    defaultModelFilename: "model.onnx",
    parameters: new Map(threadCount === 0 ? [] : [["intra_op_thread_count", String(threadCount)]]),
  };
}

function withFilShapes(loaded: LoadedModel, converted: AsyncDisposable): LoadedModel {
  return {
    instances: loaded.instances.map(squeezed),
    memoryBytes: () => loaded.memoryBytes(),
    ...(loaded.abandon === undefined ? {} : { abandon: (reason: string) => loaded.abandon?.(reason) }),
    async [Symbol.asyncDispose]() {
      await loaded[Symbol.asyncDispose]();
      await converted[Symbol.asyncDispose]();
    },
  };
}

/** As in Triton, dimensions of 1 are left out of an answer's shape, whatever its configuration says: [3] for three rows of `[ 1 ]`. */
function squeezed(instance: Instance): Instance {
  return {
    name: instance.name,
    get executionsMax() {
      return instance.executionsMax;
    },
    givenUp: (request) => instance.givenUp(request),
    async execute(batch): Promise<Execution> {
      const execution = await instance.execute(batch);
      return { ...execution, outcomes: execution.outcomes.map(squeezedOutcome) };
    },
  };
}

function squeezedOutcome(released: Released): Released {
  if (released instanceof InferenceError || released instanceof SentAnswers) return released;
  const outputs = released.outputs.map((tensor) => {
    const [rowCount = 1, ...rest] = tensor.shape;
    return { ...tensor, shape: [rowCount, ...rest.filter((dim) => dim !== 1)] };
  });
  return { ...released, outputs };
}
