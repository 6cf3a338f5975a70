import { stat } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError, type Clock, type Logger } from "../../base/index.ts";
import type { ModelConfig } from "../../modelconfig/index.ts";
import type { Arena } from "../../tensor/index.ts";
import type { ModelSource } from "../backend.ts";
import type { PythonEnvironment } from "./python-environment.ts";
import { PythonWorker } from "./python-worker.ts";
import { kinds } from "./wire.ts";
import type { WorkerFamilies } from "./worker-families.ts";
import type { ForkedWorker } from "./zygote.ts";
import type { ZygotePool } from "./zygote-pool.ts";

/** What every worker of one model version is started with. */
export interface WorkerPlan {
  readonly source: ModelSource;
  readonly modelFilename: string;
  readonly environment: PythonEnvironment;
  readonly arena: Arena;
  readonly threads: number;
  readonly inlineBytesMax: number;
}

export interface StarterOptions {
  readonly pool: ZygotePool;
  readonly families: WorkerFamilies;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Forks a worker and lets it import the model. Throws INTERNAL with the model's own words; then no process is left. */
export async function startWorker(
  options: StarterOptions,
  plan: WorkerPlan,
  name: string,
  signal: AbortSignal,
): Promise<PythonWorker> {
  const { source } = plan;
  const path = join(source.versionDirectory, plan.modelFilename);
  // Looked for here: the original waits for a minute and then says less.
  const found = await stat(path).catch(() => null);
  if (found === null || !found.isFile())
    throw new InferenceError("INTERNAL", `${plan.modelFilename} does not exist in the model repository path: ${path}`);
  signal.throwIfAborted();
  const { clock, logger, families, pool } = options;
  const family = families.begin();
  let forked: ForkedWorker;
  try {
    forked = await pool.fork(plan.environment, plan.arena.fd, family);
  } catch (error) {
    families.end(family);
    throw error;
  }
  const worker = new PythonWorker(name, forked, { clock, logger });
  void worker.ended.then(() => families.end(family));
  const body = {
    arenaBytes: plan.arena.capacityBytes,
    inlineBytesMax: plan.inlineBytesMax,
    versionDirectory: source.versionDirectory,
    threads: plan.threads,
    path: [source.versionDirectory, source.modelDirectory],
    package: String(source.version),
    module: plan.modelFilename.replace(/\.py$/, ""),
  };
  try {
    const loaded = await worker.call(kinds.load, kinds.loaded, body, signal);
    worker.completes = loaded["completes"] === true;
    return worker;
  } catch (error) {
    worker.kill("its load failed");
    await worker.ended;
    throw error;
  }
}

/** The dictionary that `auto_complete_config` made of `config`; null when the model has none. Throws what the model raised. */
export async function completeConfig(
  worker: PythonWorker,
  config: Record<string, unknown>,
  signal: AbortSignal,
): Promise<Record<string, unknown> | null> {
  if (!worker.completes) return null;
  const reply = await worker.call(kinds.complete, kinds.completed, { config }, signal);
  return reply["config"] as Record<string, unknown>;
}

export interface InitializeOptions {
  readonly source: ModelSource;
  readonly config: ModelConfig;
  readonly configJson: string;
  readonly instanceKind: string;
  readonly modelFilename: string;
}

/** Makes the model object and runs its `initialize`. Resolves with the modules it imported beyond the zygote's. */
export async function initializeWorker(
  worker: PythonWorker,
  options: InitializeOptions,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { source, config } = options;
  const reply = await worker.call(
    kinds.initialize,
    kinds.initialized,
    {
      path: join(source.versionDirectory, options.modelFilename),
      inputs: config.inputs.map((input) => input.name),
      outputs: config.outputs.map((output) => output.name),
      args: {
        model_config: options.configJson,
        model_instance_kind: options.instanceKind,
        model_instance_name: worker.name,
        model_instance_device_id: "0",
        model_repository: source.modelDirectory,
        model_version: String(source.version),
        model_name: source.servedName,
      },
    },
    signal,
  );
  const imported = reply["imported"];
  return Array.isArray(imported) ? imported.filter((name) => typeof name === "string") : [];
}
