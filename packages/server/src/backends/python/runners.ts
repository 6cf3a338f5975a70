import { stat } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError } from "@galatea/base";
import { frameworkOfRunner, gpuFrameworkOfRunner } from "./frameworks/framework-rows.ts";
import { madeFramework, notSetUpText } from "./frameworks/framework-store.ts";

/** A program that runs all models of a backend, in place of a `model.py` of each model's own. */
export interface PythonRunner {
  readonly directory: string;
  readonly filename: string;
  /** Whether it maps the model's file, which is then in memory once for all workers with an equal one. */
  readonly mapsFiles: boolean;
  /** What models run in that bring no environment; null: what all Python models do. */
  readonly environment: RunnerEnvironment | null;
}

/** An environment that the operator set up for a runner. */
export interface RunnerEnvironment {
  readonly directory: string;
  /** What its interpreter imports before it forks workers. */
  readonly imports: readonly string[];
}

/**
 * The door through which python-based backends plug in: finds the program that runs models whose configuration names such a backend; null
 * where there is none of the name. One model's worker is as any Python model's, but for where its program lies.
 */
export type FindPythonRunner = (backend: string) => Promise<PythonRunner | null>;

const filename = "model.py";

/** Runners as Triton finds them: `<directory>/<backend>/model.py`. */
export function runnersIn(directory: string): FindPythonRunner {
  return async (backend) => {
    // A configuration names a backend, and no path.
    if (!/^[\w-][\w.-]*$/.test(backend)) return null;
    const own = join(directory, backend);
    const found = await stat(join(own, filename)).catch(() => null);
    return found?.isFile() === true ? { directory: own, filename, mapsFiles: false, environment: null } : null;
  };
}

/**
 * Runners for libraries that public indexes do not carry: the operator installs them where Python models run, beside the driver that they
 * are made for. They run on GPUs only.
 */
const operatorsLibraries: ReadonlySet<string> = new Set(["tensorrt"]);

/** Where the product's own runners and what they need are looked for. */
export interface FrameworkPlaces {
  /** Holds `galatea_frameworks`. */
  readonly workers: string;
  /** Where environments that `galatea model add` made are looked for. */
  readonly environments: readonly string[];
  /** How many GPUs models may be placed on. */
  readonly gpuCount: number;
}

/**
 * The runners that come with the product, in the environments of their frameworks. Throws UNAVAILABLE where a framework is known and not
 * set up, with the command that does it.
 */
export function frameworkRunners(directories: FrameworkPlaces): FindPythonRunner {
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
        // A script reads its files as it likes.
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
