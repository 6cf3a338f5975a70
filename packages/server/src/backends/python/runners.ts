import { stat } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError } from "@galatea/base";
import { frameworkOfRunner, gpuFrameworkOfRunner } from "./frameworks/framework-rows.ts";
import { madeFramework, notSetUpText } from "./frameworks/framework-store.ts";

/** A program that runs all models of a backend, instead of a `model.py` in each model. */
export interface PythonRunner {
  readonly directory: string;
  readonly filename: string;
  /** True if it maps the model's file, which is then in memory once for all workers with an equal one. */
  readonly mapsFiles: boolean;
  /** Environment of models that bring none; null: that of all Python models. */
  readonly environment: RunnerEnvironment | null;
}

/** An environment that the operator installed for a runner. */
export interface RunnerEnvironment {
  readonly directory: string;
  /** Modules that its interpreter imports before it forks workers. */
  readonly imports: readonly string[];
}

/**
 * Finds the program that runs models of a python-based backend; null when there is none of that name. Such a model's worker is like any
 * Python model's, except for the location of its program.
 */
export type FindPythonRunner = (backend: string) => Promise<PythonRunner | null>;

const filename = "model.py";

/** Returns a finder of runners at Triton's location: `<directory>/<backend>/model.py`. */
export function runnersIn(directory: string): FindPythonRunner {
  return async (backend) => {
    // The name of a backend must not be a path.
    if (!/^[\w-][\w.-]*$/.test(backend)) return null;
    const own = join(directory, backend);
    const found = await stat(join(own, filename)).catch(() => null);
    return found?.isFile() === true ? { directory: own, filename, mapsFiles: false, environment: null } : null;
  };
}

/**
 * Runners for libraries that are not on public indexes: the operator installs them in the environment of Python models, to match the
 * driver. They run on GPUs only.
 */
const operatorsLibraries: ReadonlySet<string> = new Set(["tensorrt"]);

/** Directories of the product's own runners and their environments. */
export interface FrameworkDirectories {
  /** Directory of `galatea_frameworks`. */
  readonly workers: string;
  /** Directories of environments created by `galatea model add`. */
  readonly environments: readonly string[];
  /** Number of GPUs on which models may be placed. */
  readonly gpuCount: number;
}

/**
 * Returns a finder of the product's own runners, in the environments of their frameworks. The finder throws UNAVAILABLE when a known
 * framework is not installed, with the command that installs it.
 */
export function frameworkRunners(directories: FrameworkDirectories): FindPythonRunner {
  return async (backend) => {
    if (operatorsLibraries.has(backend)) {
      if (directories.gpuCount === 0) return null;
      const directory = join(directories.workers, "galatea_frameworks", backend);
      return { directory, filename, mapsFiles: false, environment: null };
    }
    const framework = frameworkOfRunner(backend);
    if (framework === null) return null;
    const forGpus = directories.gpuCount === 0 ? null : gpuFrameworkOfRunner(backend);
    for (const build of forGpus === null ? [framework] : [forGpus, framework]) {
      const place = await madeFramework(directories.environments, build);
      if (place === null) continue;
      return {
        directory: join(directories.workers, "galatea_frameworks", backend),
        filename,
        // A script reads its files itself.
        mapsFiles: framework.mapsFiles === true && backend === framework.name,
        environment: { directory: place.directory, imports: build.imports ?? [] },
      };
    }
    throw new InferenceError(
      "UNAVAILABLE",
      `unable to find backend library for backend '${backend}': its packages are ${notSetUpText(directories.environments, framework)}`,
    );
  };
}
