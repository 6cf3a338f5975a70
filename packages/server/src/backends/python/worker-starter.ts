import { closeSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError, type Clock, type Logger } from "@galatea/base";
import { printConfigJson, type ModelConfig, type PlacedInstance } from "../../modelconfig/index.ts";
import type { Arena } from "../../tensor/index.ts";
import type { ModelSource } from "../backend.ts";
import type { NamespaceMetrics } from "../namespace-metrics.ts";
import type { BlsClient } from "../bls-client.ts";
import { frameLimits } from "./frame-limits.ts";
import type { PythonEnvironment } from "./python-environment.ts";
import { PythonWorker } from "./python-worker.ts";
import { kinds } from "./wire.ts";
import type { PythonRunner } from "./runners.ts";
import type { SharedFile, SharedFiles } from "./shared-files.ts";
import type { Tenants } from "./tenants.ts";
import type { WorkerFamilies } from "./worker-families.ts";
import type { ForkedWorker } from "./zygote.ts";
import type { ZygotePool } from "./zygote-pool.ts";

/** Start options that all workers of a model version share. */
export interface WorkerPlan {
  readonly source: ModelSource;
  /** The program that the worker runs: model.py in the version's directory, or the program of a python-based backend. */
  readonly program: PythonRunner;
  readonly environment: PythonEnvironment;
  /** The model's file in the version's directory, which workers with equal files share; null if no file is shared. */
  readonly sharedFile: string | null;
  /** True if the model may use GPUs: it has instances on GPUs, or chooses its devices itself (KIND_MODEL). */
  readonly seesGpus: boolean;
  readonly arena: Arena;
  readonly others: BlsClient;
  readonly metrics: NamespaceMetrics;
  readonly inlineBytesMax: number;
  /** Settings from --backend-config for the model's backend. */
  readonly backendConfig: ReadonlyMap<string, string>;
}

export interface StarterOptions {
  readonly pool: ZygotePool;
  readonly families: WorkerFamilies;
  readonly sharedFiles: SharedFiles;
  /** Null if workers are isolated only from each other's processes. */
  readonly tenants: Tenants | null;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly print: (line: string) => void;
}

/** Forks a worker and makes it import the model. Throws INTERNAL with the model's error text; no process is left then. */
export async function startWorker(
  options: StarterOptions,
  plan: WorkerPlan,
  name: string,
  signal: AbortSignal,
): Promise<PythonWorker> {
  const { source } = plan;
  const { directory, filename } = plan.program;
  const path = join(directory, filename);
  const isOwn = directory === source.versionDirectory;
  // Checked here, because Triton reports a missing file only after a minute, and with fewer details.
  const found = await stat(path).catch(() => null);
  if (found === null || !found.isFile())
    throw new InferenceError("INTERNAL", `${filename} does not exist in the model repository path: ${path}`);
  signal.throwIfAborted();
  const { clock, logger, print } = options;
  const { forked, environment, release, file } = await forkWorker(options, plan, signal);
  const worker = new PythonWorker(name, forked, {
    clock,
    logger,
    print,
    environment,
    others: plan.others,
    metrics: plan.metrics,
    arena: plan.arena,
    inlineBytesMax: plan.inlineBytesMax,
    file,
  });
  void worker.ended.then(release);
  const body = {
    // The directory is part of the title, because models of different tenants may have the same name.
    title: `${name} (model of ${source.versionDirectory})`,
    arenaBytes: plan.arena.capacityBytes,
    inlineBytesMax: plan.inlineBytesMax,
    backendConfig: Object.fromEntries(plan.backendConfig),
    packageHint: plan.environment.packageHint,
    callsMax: frameLimits.callsMax,
    versionDirectory: source.versionDirectory,
    moduleDirectory: directory,
    // The program of a python-based backend is a single module; the model's directory is not added to its path.
    path: isOwn ? [source.versionDirectory, source.modelDirectory] : [directory],
    package: isOwn ? String(source.version) : "",
    module: filename.replace(/\.py$/, ""),
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

/** Forks a worker in the tenant of the plan. Returns the worker, and a callback that must be called when it has ended. */
async function forkWorker(
  { pool, families, tenants, sharedFiles }: StarterOptions,
  { source, arena, environment: requested, sharedFile, seesGpus }: WorkerPlan,
  signal: AbortSignal,
) {
  const tenant = (await tenants?.enter(String(arena.id), source, { seesGpus })) ?? null;
  const family = families.begin();
  // The shared file is kept while the worker runs, so that another worker with an equal file can use it.
  let file: SharedFile | null = null;
  let forking: Promise<ForkedWorker> | null = null;
  const release = async () => {
    families.end(family);
    // A fork whose load was aborted may still send the file's descriptor.
    await forking?.catch(() => null);
    file?.[Symbol.dispose]();
    await tenant?.[Symbol.asyncDispose]();
  };
  try {
    file = sharedFile === null ? null : await sharedFiles.open(join(source.versionDirectory, sharedFile));
    signal.throwIfAborted();
    const environment = tenant?.environment(requested) ?? requested;
    // The interpreter of an environment that a model ships is already confined.
    const plan = requested.directory === null ? (tenant?.plan ?? null) : null;
    forking = pool.fork(environment, { arenaFd: arena.fd, family, plan, fileFd: file?.fd ?? null });
    const forked = await unlessAborted(forking, signal);
    return { forked, environment, release, file };
  } catch (error) {
    await release();
    throw error;
  }
}

/**
 * Returns the configuration from the model's `auto_complete_config`; null if the model does not define that method. Throws the model's
 * exception.
 */
export async function completedConfig(
  worker: PythonWorker,
  config: ModelConfig,
  signal: AbortSignal,
): Promise<Record<string, unknown> | null> {
  if (!worker.completes) return null;
  const reply = await worker.call(kinds.complete, kinds.completed, { config: printConfigJson(config) }, signal);
  const completed = reply["config"];
  if (typeof completed !== "object" || completed === null || Array.isArray(completed))
    throw new InferenceError(
      "INTERNAL",
      `model '${worker.name}' completed its configuration with something that is not an object`,
    );
  return completed as Record<string, unknown>;
}

export interface InitializeOptions {
  readonly source: ModelSource;
  readonly config: ModelConfig;
  readonly configJson: string;
  readonly placed: PlacedInstance;
  readonly program: PythonRunner;
}

/** Creates the model object and runs its `initialize`. Resolves with the modules that the model imported in addition to the zygote's. */
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
      path: join(options.program.directory, options.program.filename),
      inputs: config.inputs.map((input) => input.name),
      outputs: config.outputs.map((output) => output.name),
      decoupled: config.decoupled,
      unreadResponsesMax: frameLimits.unreadResponsesMax,
      args: {
        model_config: options.configJson,
        model_instance_kind: options.placed.kind,
        model_instance_name: worker.name,
        model_instance_device_id: String(options.placed.deviceId),
        model_repository: source.modelDirectory,
        model_version: String(source.version),
        model_name: source.servedName,
      },
    },
    signal,
  );
  const imported = reply["imported"];
  return Array.isArray(imported) ? imported.slice(0, frameLimits.moduleNamesMax).filter(isModuleName) : [];
}

/** Returns whether a value is a valid module name. Checked because a zygote will import the module. */
function isModuleName(name: unknown): name is string {
  return (
    typeof name === "string" &&
    name.length <= frameLimits.moduleNameLengthMax &&
    /^[\p{L}_][\p{L}\p{N}_.]*$/u.test(name)
  );
}

/** Rejects when the signal aborts. A worker that is forked after that ends at once, because its lifeline descriptor is closed. */
function unlessAborted(forking: Promise<ForkedWorker>, signal: AbortSignal): Promise<ForkedWorker> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      reject(signal.reason as Error);
      void forking.then(discard, () => {});
    };
    signal.addEventListener("abort", onAbort, { once: true });
    forking.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

function discard({ socketFd, lifelineFd, outputFd }: ForkedWorker): void {
  for (const fd of [lifelineFd, socketFd, outputFd]) closeSync(fd);
}
