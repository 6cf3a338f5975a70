import { stat } from "node:fs/promises";
import { join } from "node:path";

/** A program that runs all models of a backend, in place of a `model.py` of each model's own. */
export interface PythonRunner {
  readonly directory: string;
  readonly filename: string;
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
    return found?.isFile() === true ? { directory: own, filename } : null;
  };
}
