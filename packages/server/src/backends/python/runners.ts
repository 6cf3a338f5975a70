import { stat } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError } from "@galatea/base";
import { backendFramework, backendGpuFramework } from "./frameworks/framework-rows.ts";
import { findFramework, notInstalledText } from "./frameworks/framework-store.ts";

/** The program of a python-based backend. It runs all models of that backend, which therefore need no `model.py`. */
export interface PythonRunner {
  readonly directory: string;
  readonly filename: string;
  /** True if the program maps the model's file, so that workers with equal files share the memory. */
  readonly mapsFiles: boolean;
  /** Environment for models without one of their own. Null: the environment for all Python models. */
  readonly environment: RunnerEnvironment | null;
}

/** An environment that the operator has installed for a python-based backend. */
export interface RunnerEnvironment {
  readonly directory: string;
  /** Modules that a zygote imports before it forks workers. */
  readonly imports: readonly string[];
}

/**
 * Returns the program of a python-based backend; null if there is none with this name. A worker of such a model differs from others only in
 * the location of its program.
 */
export type FindPythonRunner = (backend: string) => Promise<PythonRunner | null>;

const filename = "model.py";

/** Returns a function that finds programs where Triton expects them: `<directory>/<backend>/model.py`. */
export function runnersInDirectory(directory: string): FindPythonRunner {
  return async (backend) => {
    // Rejects names that contain a path.
    if (!/^[\w-][\w.-]*$/.test(backend)) return null;
    const own = join(directory, backend);
    const found = await stat(join(own, filename)).catch(() => null);
    return found?.isFile() === true ? { directory: own, filename, mapsFiles: false, environment: null } : null;
  };
}

/**
 * Backends whose library is not in a public package index, such as TensorRT. The operator installs a version of the library that matches
 * the driver, in the environment of Python models. These backends run only on GPUs.
 */
const operatorsLibraries: ReadonlySet<string> = new Set(["tensorrt"]);

/** Directories of this product's own backend programs, and of their environments. */
export interface FrameworkDirectories {
  /** Directory of `galatea_frameworks`. */
  readonly workers: string;
  /** Directories that contain environments created by `galatea model add`. */
  readonly environments: readonly string[];
  /** Number of GPUs on which models may be placed. */
  readonly gpuCount: number;
}

/**
 * Returns a function that finds this product's own backend programs and their environments. The function throws UNAVAILABLE, with the
 * command to run, if a framework is not installed.
 */
export function frameworkRunners(directories: FrameworkDirectories): FindPythonRunner {
  return async (backend) => {
    if (operatorsLibraries.has(backend)) {
      if (directories.gpuCount === 0) return null;
      const directory = join(directories.workers, "galatea_frameworks", backend);
      return { directory, filename, mapsFiles: false, environment: null };
    }
    const framework = backendFramework(backend);
    if (framework === null) return null;
    const forGpus = directories.gpuCount === 0 ? null : backendGpuFramework(backend);
    for (const build of forGpus === null ? [framework] : [forGpus, framework]) {
      const location = await findFramework(directories.environments, build);
      if (location === null) continue;
      return {
        directory: join(directories.workers, "galatea_frameworks", backend),
        filename,
        // A script reads its files itself, so its file is not shared.
        mapsFiles: framework.mapsFiles === true && backend === framework.name,
        environment: { directory: location.directory, imports: build.imports ?? [] },
      };
    }
    throw new InferenceError(
      "UNAVAILABLE",
      `unable to find backend library for backend '${backend}': its packages are ${notInstalledText(directories.environments, framework)}`,
    );
  };
}
