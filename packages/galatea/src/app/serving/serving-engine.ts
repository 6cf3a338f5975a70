import { join, resolve } from "node:path";
import { systemClock, type ByteBudget } from "@galatea/base";
import { ArchiveCatalog } from "@galatea/runtimes/container-runtimes";
import { createEngine, type EngineCore } from "@galatea/server/engine";
import { DirectoryCatalog } from "@galatea/server/repository";
import type { ServeOptions } from "../../options/index.ts";
import type { OpenedGpus } from "../gpus.ts";
import { serverVersion } from "../version.ts";
import type { BackendDependencies } from "./backend-dependencies.ts";
import { backendConfig, backendRows } from "./backend-rows.ts";
import { backendsWithoutGpus } from "./onnx-gpus.ts";
import { processDirectory } from "./process-directory.ts";
import { scriptPackages } from "./script-packages.ts";
import type { ServerMetrics } from "./server-metrics.ts";

/** Reserved address space, not memory. The memory budget for requests in flight limits the content of all arenas. */
const arenaBytesMin = 64 * 2 ** 30;
const namespaceArenaBytes = 4 * 2 ** 30;
/** Maximum disk space for models that a tenant's archive loads from files in a load request. */
const archiveOverrideBytesMax = 2 ** 30;

export interface ServingDependencies extends BackendDependencies {
  readonly options: ServeOptions;
  /** Memory budget for requests and responses in flight. */
  readonly budget: ByteBudget;
  readonly metrics: ServerMetrics;
  readonly gpus: OpenedGpus;
}

/** Creates the engine with its backends and catalogs. Loads no models. */
export function createServingEngine(dependencies: ServingDependencies, rows = backendRows): EngineCore {
  const { options, budget, plan, log, metrics, directories, gpus } = dependencies;
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
    backends: rows.map((row) => row(dependencies)),
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
            // No limit: callers that may load models into this repository may also write to its disk.
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
    // Twice the budget, because blocks of different sizes leave gaps.
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
