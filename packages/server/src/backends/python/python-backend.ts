import { join } from "node:path";
import { TaskGroup, type Clock, type Logger } from "@galatea/base";
import {
  mergeAutoComplete,
  placedInstances,
  printConfigJsonText,
  type ModelConfig,
  type PlacedInstance,
} from "../../modelconfig/index.ts";
import { adoptOrphans } from "@galatea/base/processes";
import type { Backend, LoadContext, LoadedModel, ModelSource } from "../backend.ts";
import type { DeviceBytes } from "../device-bytes.ts";
import type { ConfinementRow, TenantOptions } from "./confinement-plan.ts";
import {
  requestedEnvironment,
  operatorEnvironment,
  backendEnvironment,
  permanentLease,
  type EnvironmentOptions,
} from "./environments.ts";
import type { FrameContext } from "./execution-codec.ts";
import { DirectoryCache } from "./directory-cache.ts";
import { LoadedPythonModel, reserveWorker, type PythonMemorySources } from "./loaded-python-model.ts";
import { PythonInstance } from "./python-instance.ts";
import type { PythonWorker } from "./python-worker.ts";
import { completedConfig, initializeWorker, startWorker, type WorkerPlan } from "./worker-starter.ts";
import type { FindPythonRunner, PythonRunner } from "./runners.ts";
import { SharedFiles } from "./shared-files.ts";
import { FailureLog } from "./failure-log.ts";
import { PipelineDepth } from "./pipeline-depth.ts";
import { tenantPaths, Tenants } from "./tenants.ts";
import { BusyPolling } from "./busy-polling.ts";
import { ExecuteEncoder } from "./execute-encoder.ts";
import { WorkerFamilies } from "./worker-families.ts";
import { ZygotePool } from "./zygote-pool.ts";

export interface PythonBackendOptions extends EnvironmentOptions {
  /** Directory of `galatea_zygote.py` and `triton_python_backend_utils.py`. */
  readonly workerDirectory: string;
  readonly zygotesMax: number;
  readonly zygoteIdleMs: number;
  readonly learnedModulesMax: number;
  /** Modules that a zygote may import before a model's code runs, although their import reads environment variables. */
  readonly preImports: readonly string[];
  /** Finds the programs of python-based backends. */
  readonly findRunner: FindPythonRunner;
  readonly inlineBytesMax: number;
  /** Limit of all model files in shared memory. Workers read further files themselves. */
  readonly sharedFileBytesMax: number;
  /** Confinement of each namespace as a tenant; null: workers are isolated only from each other's processes. */
  readonly tenants: TenantOptions | null;
  /** Called with the isolation measures of this machine, before the first tenant's code runs. */
  readonly onConfinement: (rows: readonly ConfinementRow[]) => void;
  /** Number of GPUs on which models may be placed. */
  readonly gpuCount: number;
  /** Returns the GPU memory that processes use; called for models on GPUs. */
  readonly gpuBytesOf: (pids: readonly number[]) => Promise<DeviceBytes>;
  /**
   * Maximum number of instances of a model; has no effect if the configuration has as many. Additional instances are started when all
   * others execute.
   */
  readonly instancesOnDemandMax: number;
  readonly hangReportMs: number;
  readonly hangKillMs: number | null;
  readonly finalizeMs: number;
  /** Number of workers that are kept after `complete` for the load that usually follows. */
  readonly completedWorkersMax: number;
  readonly completedWorkerMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Receives lines that models print to their output. */
  readonly print: (line: string) => void;
  readonly random: () => number;
}

/** Limits and times that have no flag. */
export const pythonBackendDefaults = {
  zygotesMax: 8,
  zygoteIdleMs: 10 * 60_000,
  learnedModulesMax: 256,
  inlineBytesMax: 4096,
  hangReportMs: 30_000,
  finalizeMs: 30_000,
  completedWorkersMax: 16,
  completedWorkerMs: 30_000,
} as const;

const noGpuBytes = (): Promise<DeviceBytes> => Promise.resolve(new Map());

/**
 * Creates the backend for models written for Triton's Python backend. Each instance is a worker process, forked from an interpreter that
 * has imported the usual modules.
 */
export function createPythonBackend(options: PythonBackendOptions): Backend {
  return new PythonBackend(options);
}

/** A worker that has completed a configuration. It is kept to become the model's first instance. */
interface CompletedWorker {
  readonly worker: PythonWorker;
  readonly timer: Disposable;
  readonly environment: Disposable;
}

class PythonBackend implements Backend {
  readonly name = "python";
  readonly #options: PythonBackendOptions;
  readonly #pool: ZygotePool;
  readonly #families: WorkerFamilies;
  readonly #tenants: Tenants | null;
  readonly #encoder = new ExecuteEncoder();
  readonly #sharedFiles: SharedFiles;
  readonly #unpacked: DirectoryCache;
  readonly #busyPolling: BusyPolling;
  readonly #completed = new Map<string, CompletedWorker>();
  /** Ends workers that no caller waits for. */
  readonly #ending: TaskGroup;

  constructor(options: PythonBackendOptions) {
    this.#options = options;
    this.#busyPolling = new BusyPolling(options.clock);
    this.#sharedFiles = new SharedFiles({ bytesMax: options.sharedFileBytesMax, fileBytesMin: sharedFileBytesMin });
    this.#unpacked = new DirectoryCache({
      directory: options.environmentsDirectory,
      bytesMax: options.environmentBytesMax,
      clock: options.clock,
    });
    this.#ending = new TaskGroup((error) => options.logger.error(`failed to end a Python worker: ${String(error)}`));
    const { workerDirectory, zygotesMax, zygoteIdleMs, learnedModulesMax, preImports, tenants, clock, logger } =
      options;
    this.#families = new WorkerFamilies(logger, (user) => this.#tenants?.isGone(user) === true);
    adoptOrphans();
    this.#pool = new ZygotePool({
      workerDirectory,
      tenantArguments: () => this.#tenants?.tenantArguments ?? "",
      zygotesMax,
      idleMs: zygoteIdleMs,
      learnedModulesMax,
      preImports: new Set(preImports),
      clock,
      logger,
    });
    this.#tenants = tenants === null ? null : this.#openTenants(tenants);
  }

  #openTenants(tenants: TenantOptions): Tenants {
    const python = operatorEnvironment(this.#options);
    return new Tenants({
      tenants,
      workerDirectory: this.#options.workerDirectory,
      python,
      findFacts: () => this.#pool.machineFacts(python),
      endEnvironment: (key) => this.#pool.endEnvironment(key),
      endRemains: () => this.#families.look(),
      onConfinement: this.#options.onConfinement,
      logger: this.#options.logger,
    });
  }

  /**
   * Returns null, because workers share memory with their zygote: only a measurement shows the cost of a load. The last measured cost is
   * the best estimate.
   */
  estimateBytes(): Promise<null> {
    return Promise.resolve(null);
  }

  async heldBytes(source: ModelSource, config: ModelConfig): Promise<number> {
    const runner = config.backend === this.name ? null : await this.#options.findRunner(config.backend);
    const file = runner?.mapsFiles === true ? mappedFile(config) : null;
    return file === null ? 0 : await this.#sharedFiles.leasedBytesOf(join(source.versionDirectory, file));
  }

  async complete(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<ModelConfig> {
    using resources = new DisposableStack();
    const plan = await this.#plan(source, config, context, resources);
    const worker = await startWorker(this.#starter(), plan, firstInstanceName(source, config), context.signal);
    try {
      const found = await completedConfig(worker, config, context.signal);
      const completed = found === null ? config : mergeAutoComplete(config, found);
      this.#keep(keyOf(plan), worker, resources.move());
      return completed;
    } catch (error) {
      worker.kill("its auto_complete_config failed");
      await worker.ended;
      throw error;
    }
  }

  async warmUp(): Promise<void> {
    await this.#pool.warmUp(operatorEnvironment(this.#options));
  }

  async load(source: ModelSource, config: ModelConfig, context: LoadContext): Promise<LoadedModel> {
    this.#warnOfGpus(config);
    using resources = new DisposableStack();
    const plan = await this.#plan(source, config, context, resources);
    const frameContext = frameContextOf(source, config, plan);
    const configJson = printConfigJsonText(config);
    const unhealthy = new Map<number, string>();
    const onMemory = context.onMemory ?? (() => {});
    const workers = new Map<number, PythonWorker>();
    const planned = placedInstances(config, this.#options.gpuCount);
    const spares = sparesOf(config, planned, this.#options.instancesOnDemandMax);
    const pipelineDepth = new PipelineDepth(this.#options.clock, planned.length + spares.length);
    const failures = this.#failureLog(frameContext, resources);
    const open = async (placed: PlacedInstance, position: number, isSpare: boolean) => {
      const { name } = placed;
      const begin = async (signal: AbortSignal, fresh: boolean) => {
        await using _room = isSpare && !workers.has(position) ? await reserveWorker(workers.values(), context) : null;
        const kept = fresh ? null : this.#takeCompleted(keyOf(plan));
        const worker = kept ?? (await startWorker(this.#starter(), plan, name, signal));
        worker.name = name;
        worker.others = context.bls;
        workers.set(position, worker);
        if (worker.file !== null) worker.file.onCharged = onMemory;
        const about = { source, config, configJson, placed, program: plan.program };
        try {
          this.#pool.learn(worker.environment, await initializeWorker(worker, about, signal));
          // The memory of a replacement worker must be measured again.
          if (fresh) onMemory();
          return worker;
        } catch (error) {
          worker.kill("its initialize failed");
          await worker.ended;
          if (isSpare) workers.delete(position);
          throw error;
        }
      };
      const onHealth = (reason: string | null) => {
        if (reason === null) unhealthy.delete(position);
        else unhealthy.set(position, reason);
        const [worst] = unhealthy.values();
        context.onHealth(worst === undefined ? { ok: true } : { ok: false, reason: worst });
      };
      const worker = isSpare ? null : await begin(context.signal, false);
      const { clock, logger, random, hangReportMs, hangKillMs, finalizeMs } = this.#options;
      return new PythonInstance(
        {
          name,
          frameContext,
          encoder: this.#encoder,
          busyPolling: this.#busyPolling,
          pipelineDepth,
          failures,
          clock,
          logger,
          random,
          hangReportMs,
          hangKillMs,
          finalizeMs,
          onHealth,
          start: (signal) => begin(signal, true),
          owner: context.bls,
        },
        worker,
      );
    };
    const instances = await allOrNone(planned.map((placed, position) => open(placed, position, false)));
    const dormant = await Promise.all(spares.map((placed, index) => open(placed, planned.length + index, true)));
    const measures = this.#measures(workers, planned);
    return new LoadedPythonModel({ instances, spares: dormant, measures, environment: resources.move() });
  }

  #measures(workers: ReadonlyMap<number, PythonWorker>, planned: readonly PlacedInstance[]): PythonMemorySources {
    return {
      workers: () => workers.values(),
      chargedFileBytes: () => workers.values().reduce((sum, { file }) => sum + (file?.chargedBytes ?? 0), 0),
      gpuBytesOf: planned.some(({ kind }) => kind === "GPU") ? this.#options.gpuBytesOf : noGpuBytes,
    };
  }

  #warnOfGpus(config: ModelConfig): void {
    if (this.#options.gpuCount > 0 || config.instanceGroups.every(({ kind }) => kind !== "KIND_GPU")) return;
    this.#options.logger.warning(
      `model '${config.name}' requests KIND_GPU; its instances run on the CPU, and the model receives KIND_CPU`,
    );
  }

  /** Creates the failure log of a model version. The log ends when `resources` is disposed. */
  #failureLog({ modelName: model, modelVersion: version }: FrameContext, resources: DisposableStack): FailureLog {
    const failures = new FailureLog(this.#options.clock, this.#options.logger, { model, version });
    resources.defer(() => failures.end());
    return failures;
  }

  /** Returns whether a python-based backend with this name and a program exists. */
  async runs(backend: string): Promise<boolean> {
    return (await this.#options.findRunner(backend)) !== null;
  }

  /**
   * Leases the environment that the model ships. If it ships none, leases the environment of its python-based backend, otherwise the
   * environment of Python models.
   */
  async #environment(source: ModelSource, config: ModelConfig, runner: PythonRunner | null, signal: AbortSignal) {
    const { tenants } = this.#options;
    const executionEnvPath = config.parameters.get("EXECUTION_ENV_PATH");
    const ownOfRunner = runner?.environment ?? null;
    if (ownOfRunner !== null && (executionEnvPath ?? "") === "")
      return permanentLease(backendEnvironment(this.#options, ownOfRunner));
    const within = tenants === null ? null : [...tenantPaths(source), ...tenants.readPaths];
    const request = { modelDirectory: source.modelDirectory, executionEnvPath, within };
    return await requestedEnvironment(this.#options, this.#unpacked, request, signal);
  }

  /**
   * Creates the start options of a model's workers. `resources` becomes the owner of the environment's lease, which must last as long as
   * workers may start or import modules.
   */
  async #plan(
    source: ModelSource,
    config: ModelConfig,
    context: LoadContext,
    resources: DisposableStack,
  ): Promise<WorkerPlan> {
    const { inlineBytesMax, findRunner } = this.#options;
    const runner = config.backend === this.name ? null : await findRunner(config.backend);
    const own = config.defaultModelFilename === "" ? "model.py" : config.defaultModelFilename;
    return {
      source,
      program: runner ?? { directory: source.versionDirectory, filename: own, mapsFiles: false, environment: null },
      sharedFile: runner?.mapsFiles === true ? mappedFile(config) : null,
      environment: resources.use(await this.#environment(source, config, runner, context.signal)).environment,
      seesGpus: config.instanceGroups.some(({ kind }) => kind !== "KIND_CPU"),
      arena: context.arena,
      others: context.bls,
      metrics: context.metrics,
      inlineBytesMax,
      backendConfig: context.backendConfig,
    };
  }

  #starter() {
    const { clock, logger, print } = this.#options;
    const [pool, families, tenants, sharedFiles] = [this.#pool, this.#families, this.#tenants, this.#sharedFiles];
    return { pool, families, tenants, sharedFiles, clock, logger, print };
  }

  /** Keeps a worker for the load that usually follows. If there are too many kept workers, the oldest one is ended. */
  #keep(key: string, worker: PythonWorker, environment: Disposable): void {
    this.#drop(key);
    const [oldest] = this.#completed.keys();
    if (this.#completed.size >= this.#options.completedWorkersMax && oldest !== undefined) this.#drop(oldest);
    const timer = this.#options.clock.timer(this.#options.completedWorkerMs, () => this.#drop(key));
    this.#completed.set(key, { worker, timer, environment });
  }

  #takeCompleted(key: string): PythonWorker | null {
    const kept = this.#completed.get(key);
    if (kept === undefined) return null;
    this.#completed.delete(key);
    kept.timer[Symbol.dispose]();
    // The lease of the kept worker is not needed any more, because the load has its own lease of the environment.
    kept.environment[Symbol.dispose]();
    return kept.worker.alive ? kept.worker : null;
  }

  #drop(key: string): void {
    const kept = this.#takeCompleted(key);
    if (kept === null) return;
    kept.kill("its model was not loaded");
    this.#ending.run(async () => void (await kept.ended));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const key of this.#completed.keys()) this.#drop(key);
    await this.#ending.waitForTasks();
    await this.#tenants?.ended();
    await this.#pool[Symbol.asyncDispose]();
    await this.#families.ended();
    this.#tenants?.[Symbol.dispose]();
  }
}

/** Minimum size in bytes of a shared file. Sharing a file of a few pages would not save the cost of a descriptor and a mapping. */
const sharedFileBytesMin = 64 * 1024;

/**
 * Returns the file with the model's tensors, which is next to model.py for a model written in Python; null if the file is at another
 * location.
 */
function mappedFile({ defaultModelFilename }: ModelConfig): string | null {
  const name = (defaultModelFilename || "model.pt").replace(/\.py$/, ".pt");
  return name.includes("/") ? null : name;
}

/** Returns the additional instances of a model, with the settings of its first one. A model with instances on GPUs has none. */
function sparesOf(
  { instanceGroups: [group] }: ModelConfig,
  planned: readonly PlacedInstance[],
  instancesMax: number,
): readonly PlacedInstance[] {
  const [like] = planned;
  if (group === undefined || like === undefined || planned.some(({ kind }) => kind === "GPU")) return [];
  const count = Math.max(0, instancesMax - planned.length);
  return Array.from({ length: count }, (_, index) => ({ ...like, name: `${group.name}_${planned.length + index}` }));
}

/** Waits for all instances. If one fails, closes the others before it throws the error. */
async function allOrNone(opening: readonly Promise<PythonInstance>[]): Promise<PythonInstance[]> {
  const settled = await Promise.allSettled(opening);
  const failure = settled.find((one) => one.status === "rejected");
  const opened = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  if (failure === undefined) return opened;
  await Promise.all(opened.map((instance) => instance[Symbol.asyncDispose]()));
  throw failure.reason;
}

/**
 * Returns a key of everything that a worker is started with. A load may use a worker that `complete` has started only if the keys are
 * equal.
 */
function keyOf(plan: WorkerPlan): string {
  return [
    plan.source.versionDirectory,
    plan.program.directory,
    plan.program.filename,
    plan.environment.key,
    plan.arena.id,
  ].join("\n");
}

function firstInstanceName({ servedName }: ModelSource, { instanceGroups: [first] }: ModelConfig): string {
  return first === undefined ? servedName : `${first.name}_0`;
}

function frameContextOf(source: ModelSource, config: ModelConfig, plan: WorkerPlan): FrameContext {
  return {
    modelName: source.servedName,
    modelVersion: String(source.version),
    inputIndex: new Map(config.inputs.map((input, index) => [input.name, index])),
    outputIndex: new Map(config.outputs.map((output, index) => [output.name, index])),
    outputNames: config.outputs.map((output) => output.name),
    isDecoupled: config.decoupled,
    arena: plan.arena,
    inlineBytesMax: plan.inlineBytesMax,
  };
}
