import { availableParallelism } from "node:os";
import { join, relative, resolve } from "node:path";
import { systemClock, type ByteBudget, type Logger } from "@galatea/base";
import type { Backend } from "@galatea/server/backends";
import type { FindPythonRunner, FixedPath, TenantOptions } from "@galatea/server/backends/python";
import { ArchiveCatalog, type OpenedContainer } from "@galatea/runtimes/container-runtimes";
import { gpuDevices } from "@galatea/server/gpus";
import { onnxRuntimeLibrary } from "@galatea/server/native";
import { createEngine, type EngineCore } from "@galatea/server/engine";
import { DirectoryCatalog } from "@galatea/server/repository";
import type { ContainerPlan } from "../container-environment.ts";
import type { DataDirectories } from "../directories.ts";
import { lazyBackend } from "./lazy-backend.ts";
import type { GpuMachineParts } from "../gpus.ts";
import { backendsWithoutGpus, findOnnxGpuLibrary } from "./onnx-gpus.ts";
import type { ServeOptions } from "../../options/index.ts";
import { runnerEnvironment } from "../passed-environment.ts";
import { processDirectory } from "./process-directory.ts";
import { workerDirectory } from "@galatea/server/python-programs";
import { isPythonThere, openPythonBackend, type PythonBackendParts } from "./python.ts";
import { scriptPackages, scriptPackagesDirectory } from "./script-packages.ts";
import type { ServerMetrics } from "./server-metrics.ts";
import { serverVersion } from "../version.ts";

/** Addresses, not memory: what lies in all arenas together is bounded by the budget of bytes in flight. */
const arenaBytesMin = 64 * 2 ** 30;
const namespaceArenaBytes = 4 * 2 ** 30;
/** What tenants share beside the models of the memory budget: interpreters with their libraries, tensors, scratch files. */
const sharedBytes = 2 * 2 ** 30;
/** More threads than that are more than memory can feed. */
const treeLanesMax = 32;
/** Disk for the models that an archive's own models load from files of their making. */
const archiveOverrideBytesMax = 2 ** 30;

export interface ServingParts {
  readonly options: ServeOptions;
  /** What requests and answers in flight take. */
  readonly budget: ByteBudget;
  readonly plan: ContainerPlan | null;
  readonly log: Logger;
  readonly metrics: ServerMetrics;
  readonly directories: DataDirectories;
  readonly gpus: GpuMachineParts;
  /** See PythonBackendParts. */
  readonly onConfinement: PythonBackendParts["onConfinement"];
}

/** The engine with its backends and catalogs, nothing loaded. */
export function createServingEngine(parts: ServingParts): EngineCore {
  const { options, budget, plan, log, metrics, directories, gpus } = parts;
  const read = {
    configName: options.modelConfigName,
    autoComplete: options.autoComplete,
    gpuCount: gpus.count,
    cpuBackends: backendsWithoutGpus(directories, log),
  };
  const opened = plan?.opened ?? null;
  const installer = scriptPackages({ directories, log, bytesMax: options.pythonEnvironmentsBytes });
  const overrides = processDirectory(join(directories.cache, "overrides"));
  const repositories = [...(plan?.repositories ?? []), ...options.modelRepository];
  return createEngine({
    id: options.id,
    version: serverVersion,
    explicitControl: options.modelControlMode === "explicit" || plan !== null,
    strictReadiness: options.strictReadiness,
    autoComplete: options.autoComplete,
    backends: backends(parts),
    backendConfig: (backend) => backendConfig(options, backend),
    catalog:
      opened !== null && options.container !== null
        ? new ArchiveCatalog({
            container: opened,
            installer,
            directory: join(resolve(options.container.mlRoot), "model"),
            servedName: plan?.defaultModelName ?? "",
          })
        : new DirectoryCatalog({
            ...read,
            repositoryDirectories: repositories.map((directory) => resolve(directory)),
            mapping: null,
            overrideDirectory: overrides,
            // Who may load models here may fill the repository's disk as well.
            overrideBytesMax: Infinity,
          }),
    catalogOf: (source) =>
      opened !== null
        ? new ArchiveCatalog({
            container: opened,
            installer,
            directory: join(source.repositoryDirectory, source.modelDirectoryName),
            servedName: source.servedName,
          })
        : new DirectoryCatalog({
            ...read,
            repositoryDirectories: [source.repositoryDirectory],
            mapping: { directoryName: source.modelDirectoryName, servedName: source.servedName },
            overrideDirectory: overrides,
            overrideBytesMax: archiveOverrideBytesMax,
          }),
    // Twice: blocks of many sizes leave gaps.
    arenaBytes: Math.max(arenaBytesMin, 2 * budget.bytesMax),
    requestMemory: budget,
    namespaceArenaBytes,
    memoryBudgetBytes: options.memoryBudgetBytes,
    gpuBudgetBytes: gpus.budgets,
    queueLengthMax: options.queueLengthMax,
    loadsMax: options.modelLoadThreadCount,
    drainMsMax: options.unloadTimeoutSecs * 1000,
    metrics: metrics.engine,
    clock: systemClock,
    log,
  });
}

function backends({ options, plan, log, directories, onConfinement, gpus }: ServingParts): readonly Backend[] {
  const { python, pythonPackages: packages, pythonThreads: threads, pythonPreimport: preImports } = options;
  const { backendDirectory } = options;
  // The operator's own come first, as they do in Triton.
  const findRunner: FindPythonRunner = async (backend) => {
    const { frameworkRunners, runnersIn } = await import("@galatea/server/backends/python");
    const own = backendDirectory === null ? null : await runnersIn(resolve(backendDirectory))(backend);
    const ours = frameworkRunners({
      workers: workerDirectory,
      environments: directories.frameworks,
      gpuCount: gpus.count,
    });
    return own ?? (await ours(backend));
  };
  return [
    lazyBackend(
      "python",
      (signal) => {
        const tenants = tenantOptions({ options, plan, directories });
        const own = {
          packages,
          threads,
          preImports,
          tenants,
          environmentBytesMax: options.pythonEnvironmentsBytes,
          findRunner,
          gpuCount: gpus.count,
          gpuBytesOf: gpus.bytesOf,
          onConfinement,
          callMsMax: plan?.opened?.callMsMax ?? null,
          instancesOnDemandMax: options.pythonInstancesOnDemand,
        };
        return openPythonBackend({ python, log, directories, ...own }, signal);
      },
      async () => packages.length > 0 || (await isPythonThere({ python, log, directories })),
      async (backend) => (await findRunner(backend)) !== null,
    ),
    onnxRuntimeBackend({ options, plan, log, directories, gpus }),
    ...algorithmBackends(),
    lazyBackend("fil", async () => {
      const { createFilBackend } = await import("@galatea/runtimes/trees");
      return createFilBackend({
        laneCount: Math.min(treeLanesMax, availableParallelism()),
        runDeadlineMs: options.treeRunDeadlineSecs === 0 ? null : options.treeRunDeadlineSecs * 1000,
        clock: systemClock,
        log,
      });
    }),
  ];
}

/** As long as SageMaker waits for an answer. */
const algorithmMsMax = 60_000;

function algorithmBackends(): readonly Backend[] {
  const lazy = (algorithm: "linear_learner" | "sparkml" | "xgboost", threadPerModel: boolean): Backend =>
    lazyBackend(algorithm, async () => {
      const { createAlgorithmBackend } = await import("@galatea/runtimes/algorithms-backend");
      return createAlgorithmBackend({
        algorithm,
        threadPerModel,
        orderMsMax: algorithmMsMax,
        processorCount: availableParallelism(),
        clock: systemClock,
      });
    });
  // A bundle's expressions may have no end; what linear models and trees do is bounded.
  return [lazy("linear_learner", false), lazy("sparkml", true), lazy("xgboost", false)];
}

type OnnxParts = Pick<ServingParts, "options" | "plan" | "log" | "directories" | "gpus">;

function onnxRuntimeBackend({ options, plan, log, directories, gpus }: OnnxParts): Backend {
  return lazyBackend(
    "onnxruntime",
    async () => {
      const { createOnnxRuntimeBackend, onnxRuntimeBackendDefaults, quietLibrary } =
        await import("@galatea/server/backends/onnxruntime");
      const { gpus: none } = onnxRuntimeBackendDefaults;
      // The library reads this process's environment where it runs in it.
      if (options.onnxInProcess) Object.assign(process.env, quietLibrary);
      return createOnnxRuntimeBackend({
        ...onnxRuntimeBackendDefaults,
        libraryPath: onnxRuntimeLibrary(),
        processEnv: options.onnxInProcess ? null : runnerEnvironment(),
        slotCount: Math.max(2, availableParallelism()),
        runDeadlineMs: options.onnxRunDeadlineSecs === 0 ? null : options.onnxRunDeadlineSecs * 1000,
        intraOpThreadCount: 0,
        ownThreadCountMax: Math.max(64, 8 * availableParallelism()),
        gpus: {
          ...none,
          count: gpus.count,
          findLibrary: () => findOnnxGpuLibrary({ directories, env: runnerEnvironment() }),
          bytesOf: gpus.bytesOf,
          keepsEngines: plan === null,
        },
        log,
        clock: systemClock,
      });
    },
    () => Promise.resolve(true),
  );
}

/** Null where Python models are kept from each other's processes and no more. */
function tenantOptions({
  options,
  plan,
  directories,
}: Pick<ServingParts, "options" | "plan" | "directories">): TenantOptions | null {
  const isContainer = options.container?.fromEnvironment === true;
  if ((options.workerConfinement ?? (isContainer ? "tenants" : "processes")) === "processes") return null;
  const opened = plan?.opened ?? null;
  return {
    users: options.workerUsers,
    writePaths: options.workerWrite,
    tcpPorts: options.workerConnect,
    memoryBytesMax: options.workerMemoryBytes,
    processesMax: options.workerProcesses,
    scratchBytesMax: options.workerScratchBytes,
    // What the operator put there runs the models of all tenants.
    readPaths: [
      ...options.workerRead,
      ...(opened === null ? [] : [...opened.readPaths, scriptPackagesDirectory(directories)]),
      ...(options.backendDirectory === null ? [] : [resolve(options.backendDirectory)]),
    ],
    gpuDevices,
    opensPort: opened?.opensPort === true,
    fixedPaths: options.container === null ? [] : fixedPaths(resolve(options.container.mlRoot), opened),
    allMemoryBytesMax: options.memoryBudgetBytes === null ? null : options.memoryBudgetBytes + sharedBytes,
    directory: processDirectory(join(directories.cache, "workers")),
    dataDirectory: directories.root,
    slicesDirectory: join(directories.cache, "worker-users"),
  };
}

/** Where a container's models find what they are made of, as code that was written for SageMaker's containers names it. */
function fixedPaths(mlRoot: string, opened: OpenedContainer | null): readonly FixedPath[] {
  const place = "/opt/ml";
  // Triton's archives are repositories; all others are the model itself.
  const model: FixedPath = { path: join(place, "model"), leadsTo: opened === null ? "around-model" : "model" };
  const shared = (opened?.readPaths ?? []).map((directory) => ({
    path: join(place, relative(mlRoot, directory)),
    leadsTo: { directory },
  }));
  return [model, ...shared];
}

/** Settings of this backend over the global ones. */
function backendConfig(options: ServeOptions, backend: string): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  for (const each of options.backendConfig) if (each.backend === "") settings.set(each.key, each.value);
  for (const each of options.backendConfig) if (each.backend === backend) settings.set(each.key, each.value);
  return settings;
}
