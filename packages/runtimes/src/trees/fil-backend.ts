import { join } from "node:path";
import type { Clock, Logger } from "@galatea/base";
import type { ModelConfig } from "@galatea/server/modelconfig";
import type { Arena } from "@galatea/server/tensor";
import type { Backend, LoadContext, LoadedModel, ModelSource } from "@galatea/server/backends";
import { machineBytes } from "@galatea/server/backends";
import type { SessionLease } from "@galatea/server/backends";
import { compileTraversal, Evaluator } from "./evaluation/evaluator.ts";
import { readFilParameters } from "./fil-parameters.ts";
import { filInstance } from "./fil-instance.ts";
import { readTensors } from "./configured-tensors.ts";
import { type OpenModel, SharedModels } from "./shared-models.ts";
import { TreeThreads } from "./tree-threads.ts";

export interface FilBackendOptions {
  /** Number of worker threads that evaluate large batches. */
  readonly threadCount: number;
  /** Time limit of a batch in worker threads, in milliseconds; null for none. */
  readonly runDeadlineMs: number | null;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Creates the backend `fil`: models of decision trees. */
export function createFilBackend(options: FilBackendOptions): Backend {
  return new FilBackend(options);
}

class FilBackend implements Backend {
  readonly name = "fil";
  readonly #options: FilBackendOptions;
  readonly #walk = compileTraversal();
  readonly #threads: TreeThreads;
  readonly #models: SharedModels;
  /** Number of loaded models that use an arena, by id of the arena. */
  readonly #arenas = new Map<number, number>();

  constructor(options: FilBackendOptions) {
    this.#options = options;
    const { threadCount } = options;
    this.#threads = new TreeThreads({ threadCount, walk: this.#walk });
    this.#models = new SharedModels({
      workspaceCount: threadCount + 1,
      onClosed: (id) => this.#threads.forgetModel(id),
    });
  }

  /** Returns the configuration unchanged: model files do not declare whether a model is a classifier, so nothing can be completed. */
  complete(_source: ModelSource, config: ModelConfig): Promise<ModelConfig> {
    return Promise.resolve(config);
  }

  estimateBytes(): Promise<null> {
    return Promise.resolve(null);
  }

  async load(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<LoadedModel> {
    const { log } = this.#options;
    const parameters = readFilParameters(config);
    for (const key of parameters.withoutEffect) {
      log.warning(`model '${config.name}': parameter '${key}' is for GPUs and has no effect here`);
    }
    if (config.instanceGroups.some((group) => group.kind === "KIND_GPU")) {
      log.warning(`model '${config.name}' requests KIND_GPU; its trees are evaluated on the CPU`);
    }
    const tensors = readTensors(config);
    const modelPath = join(source.versionDirectory, parameters.fileName);
    const lease = await this.#models.lease({ modelPath, parameters, tensors }, context.onMemory ?? (() => {}));
    try {
      context.signal.throwIfAborted();
      return this.#loaded({ source, config, context, lease, threadsMax: parameters.threadCount || Infinity });
    } catch (error) {
      await lease[Symbol.asyncDispose]();
      throw error;
    }
  }

  #loaded({ source, config, context, lease, threadsMax }: Loading): LoadedModel {
    const { clock, runDeadlineMs } = this.#options;
    const { arena } = context;
    const opened = lease.session;
    const shared = {
      modelName: source.servedName,
      modelVersion: String(source.version),
      opened,
      evaluator: new Evaluator(this.#walk, opened.model, 0),
      threads: this.#threads,
      threadsMax,
      runDeadlineMs,
      arena,
      clock,
    };
    this.#arenas.set(arena.id, (this.#arenas.get(arena.id) ?? 0) + 1);
    return {
      instances: config.instanceGroups.flatMap((group) =>
        Array.from({ length: group.count }, (_, index) => filInstance({ ...shared, name: `${group.name}_${index}` })),
      ),
      memoryBytes: () => Promise.resolve(machineBytes(lease.chargedBytes())),
      [Symbol.asyncDispose]: async () => {
        this.#leave(arena);
        await lease[Symbol.asyncDispose]();
      },
    };
  }

  /** Counts a model of the arena as closed. After the last one, threads unmap the arena. */
  #leave({ id }: Arena): void {
    const count = (this.#arenas.get(id) ?? 1) - 1;
    this.#arenas.set(id, count);
    if (count > 0) return;
    this.#arenas.delete(id);
    this.#threads.forgetArena(id);
  }

  warmUp(): Promise<void> {
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#models[Symbol.asyncDispose]();
    await this.#threads[Symbol.asyncDispose]();
  }
}

interface Loading {
  readonly source: ModelSource;
  readonly config: ModelConfig;
  readonly context: LoadContext;
  readonly lease: SessionLease<OpenModel>;
  readonly threadsMax: number;
}
