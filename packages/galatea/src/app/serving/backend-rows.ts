import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { systemClock } from "@galatea/base";
import type { Backend } from "@galatea/server/backends";
import type { FindPythonRunner } from "@galatea/server/backends/python";
import { onnxRuntimeLibrary } from "@galatea/server/native";
import { workerDirectory } from "@galatea/server/python-programs";
import type { BackendOptions } from "../../options/index.ts";
import { runnerEnvironment } from "../passed-environment.ts";
import type { BackendDependencies } from "./backend-dependencies.ts";
import { lazyBackend } from "./lazy-backend.ts";
import { findOnnxGpuLibrary } from "./onnx-gpus.ts";
import { isPythonInstalled, installedPython, openPythonBackend } from "./python.ts";

/** Maximum number of threads that evaluate trees. More threads would be limited by memory bandwidth. */
const treeThreadsMax = 32;
/** Maximum duration of an inference in milliseconds, SageMaker's time limit for a response. */
const algorithmMsMax = 60_000;

/**
 * The backends of `serve`, with which `validate` also checks models. The first backend that can run a model is used.
 */
export const backendRows: readonly ((dependencies: BackendDependencies) => Backend)[] = [
  pythonRow,
  onnxRuntimeRow,
  () => algorithmRow("linear_learner"),
  // An expression in a SparkML bundle may loop for ever, so it runs in a thread of its own. Linear models and trees
  // always terminate.
  () => algorithmRow("sparkml", { threadPerModel: true }),
  () => algorithmRow("xgboost"),
  filRow,
];

function pythonRow(dependencies: BackendDependencies): Backend {
  const { options, log, directories, gpus } = dependencies;
  const { python, backendDirectory } = options;
  // The operator's own backends have priority, as in Triton.
  const findRunner: FindPythonRunner = async (backend) => {
    const { frameworkRunners, runnersInDirectory } = await import("@galatea/server/backends/python");
    const own = backendDirectory === null ? null : await runnersInDirectory(resolve(backendDirectory))(backend);
    const ours = frameworkRunners({
      workers: workerDirectory,
      environments: directories.frameworks,
      gpuCount: gpus.count,
    });
    return own ?? (await ours(backend));
  };
  return lazyBackend({
    name: "python",
    open: (signal) => openPythonBackend({ ...dependencies, findRunner }, signal),
    mayWarmUp: async () => options.pythonPackages.length > 0 || (await isPythonInstalled({ python, log, directories })),
    runs: async (backend) => (await findRunner(backend)) !== null,
    check: async (source, config) => {
      const { checkPythonModel } = await import("@galatea/server/backends/python");
      const parser = python ?? (await installedPython(directories)) ?? "python3";
      return await checkPythonModel({ source, config, python: parser, gpuCount: gpus.count });
    },
  });
}

function onnxRuntimeRow({ options, plan, log, directories, gpus }: BackendDependencies): Backend {
  return lazyBackend({
    name: "onnxruntime",
    open: async () => {
      const { createOnnxRuntimeBackend, onnxRuntimeBackendDefaults } =
        await import("@galatea/server/backends/onnxruntime");
      const { gpus: none } = onnxRuntimeBackendDefaults;
      return createOnnxRuntimeBackend({
        ...onnxRuntimeBackendDefaults,
        libraryPath: onnxRuntimeLibrary(),
        processEnv: runnerEnvironment(),
        slotCount: Math.max(2, availableParallelism()),
        deadlineMs: deadlineMs(options.onnxRunDeadlineSecs),
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
    mayWarmUp: () => Promise.resolve(true),
  });
}

function algorithmRow(algorithm: "linear_learner" | "sparkml" | "xgboost", { threadPerModel = false } = {}): Backend {
  return lazyBackend({
    name: algorithm,
    open: async () => {
      const { createAlgorithmBackend } = await import("@galatea/runtimes/algorithms-backend");
      return createAlgorithmBackend({
        algorithm,
        threadPerModel,
        commandMsMax: algorithmMsMax,
        processorCount: availableParallelism(),
        clock: systemClock,
      });
    },
  });
}

function filRow({ options, log }: BackendDependencies): Backend {
  return lazyBackend({
    name: "fil",
    open: async () => {
      const { createFilBackend } = await import("@galatea/runtimes/trees");
      return createFilBackend({
        threadCount: Math.min(treeThreadsMax, availableParallelism()),
        runDeadlineMs: deadlineMs(options.treeRunDeadlineSecs),
        clock: systemClock,
        log,
      });
    },
  });
}

const deadlineMs = (seconds: number) => (seconds === 0 ? null : seconds * 1000);

/** Returns the settings of a backend. They override the global settings. */
export function backendConfig(options: BackendOptions, backend: string): ReadonlyMap<string, string> {
  const settings = new Map<string, string>();
  for (const each of options.backendConfig) if (each.backend === "") settings.set(each.key, each.value);
  for (const each of options.backendConfig) if (each.backend === backend) settings.set(each.key, each.value);
  return settings;
}
