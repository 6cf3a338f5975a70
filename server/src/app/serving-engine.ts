import { createRequire } from "node:module";
import { availableParallelism } from "node:os";
import { dirname, join, resolve } from "node:path";
import { systemClock, type Logger } from "../base/index.ts";
import type { Backend } from "../backends/index.ts";
import { createEngine, type EngineCore } from "../engine/index.ts";
import { DirectoryCatalog } from "../repository/index.ts";
import type { ContainerPlan } from "./container-environment.ts";
import type { DataDirectories } from "./directories.ts";
import { lazyBackend } from "./lazy-backend.ts";
import type { ServeOptions } from "./options.ts";
import { overrideDirectory } from "./override-directory.ts";
import { isPythonThere, openPythonBackend } from "./python.ts";
import type { ServerMetrics } from "./server-metrics.ts";
import { serverVersion } from "./version.ts";

/** Sparse: an arena takes memory only where tensors lie. */
const arenaBytes = 64 * 2 ** 30;
const namespaceArenaBytes = 4 * 2 ** 30;

export interface ServingParts {
  readonly options: ServeOptions;
  readonly plan: ContainerPlan | null;
  readonly log: Logger;
  readonly metrics: ServerMetrics;
  readonly directories: DataDirectories;
}

/** The engine with its backends and catalogs, nothing loaded. */
export function createServingEngine({ options, plan, log, metrics, directories }: ServingParts): EngineCore {
  const read = { configName: options.modelConfigName, autoComplete: options.autoComplete, gpuCount: 0 };
  const overrides = overrideDirectory(directories.cache);
  const repositories = plan?.repositories ?? options.repositories;
  return createEngine({
    id: options.id,
    version: serverVersion,
    explicitControl: options.control === "explicit" || plan !== null,
    strictReadiness: options.strictReadiness,
    autoComplete: options.autoComplete,
    backends: backends(options, log, directories),
    backendConfig: (backend) => backendConfig(options, backend),
    catalog: new DirectoryCatalog({
      ...read,
      repositoryDirectories: repositories.map((directory) => resolve(directory)),
      mapping: null,
      overrideDirectory: overrides,
    }),
    catalogOf: (source) =>
      new DirectoryCatalog({
        ...read,
        repositoryDirectories: [source.repositoryDirectory],
        mapping: { directoryName: source.modelDirectoryName, servedName: source.servedName },
        overrideDirectory: overrides,
      }),
    arenaBytes,
    namespaceArenaBytes,
    memoryBudgetBytes: options.memoryBudgetBytes,
    queueLengthMax: options.queueLengthMax,
    loadsMax: options.loadsMax,
    metrics: metrics.engine,
    clock: systemClock,
    log,
  });
}

function backends(options: ServeOptions, log: Logger, directories: DataDirectories): readonly Backend[] {
  return [
    lazyBackend(
      "python",
      () => openPythonBackend({ python: options.python, log, directories }),
      () => isPythonThere({ python: options.python, log, directories }),
    ),
    lazyBackend("onnxruntime", async () => {
      const { createOnnxRuntimeBackend } = await import("../backends/onnxruntime/index.ts");
      return createOnnxRuntimeBackend({
        libraryPath: onnxRuntimeLibrary(),
        runsMax: Math.max(2, availableParallelism()),
        intraOpThreadCount: 0,
        ownThreadCountMax: Math.max(64, 8 * availableParallelism()),
        log,
        clock: systemClock,
      });
    }),
  ];
}

/** The library inside the package `onnxruntime-node`; its JavaScript is not loaded. */
function onnxRuntimeLibrary(): string {
  const entry = createRequire(import.meta.url).resolve("onnxruntime-node");
  const { platform, arch } = process;
  return join(dirname(entry), "..", "bin", "napi-v6", platform, arch, "libonnxruntime.so.1");
}

/** Settings of this backend over the global ones. */
function backendConfig(options: ServeOptions, backend: string): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  for (const each of options.backendConfig) if (each.backend === "") settings.set(each.key, each.value);
  for (const each of options.backendConfig) if (each.backend === backend) settings.set(each.key, each.value);
  return settings;
}
