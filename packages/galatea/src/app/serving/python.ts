import { createHash } from "node:crypto";
import { totalmem } from "node:os";
import { join } from "node:path";
import { asDiskError, systemClock, type Logger } from "@galatea/base";
import { workerDirectory } from "@galatea/server/python-programs";
import type { Backend } from "@galatea/server/backends";
import type { FindPythonRunner } from "@galatea/server/backends/python";
import type { DataDirectories } from "../../data-directory/index.ts";
import type { BackendDependencies } from "./backend-dependencies.ts";
import { modelOutput } from "./model-output.ts";
import { withGpuOrder } from "../gpus.ts";
import { modelEnvironment, installerEnvironment } from "../passed-environment.ts";
import { memoryShare } from "../request-memory.ts";
import { tenantOptions } from "./tenant-options.ts";
import { withThreads } from "../thread-environment.ts";

/** Packages that models can import without an environment of their own. */
const ownPackages = ["numpy", "tokenizers"];
export const knownPythons = ["python3", "python3.13", "python3.12", "python3.11", "python3.10", "python3.9"];

export interface PythonDependencies {
  /** The interpreter of `--python`; null: an environment is created on demand. */
  readonly python: string | null;
  readonly log: Logger;
  readonly directories: DataDirectories;
}

/**
 * Returns the interpreter for models: the one of `--python`, or that of this product's own environment, which is
 * created once.
 */
export async function findPython(
  dependencies: PythonDependencies,
  signal = new AbortController().signal,
): Promise<string> {
  if (dependencies.python !== null) return dependencies.python;
  return await prepare(dependencies, { packages: ownPackages, pythons: knownPythons, wheelsOnly: false }, signal);
}

/**
 * Returns the directory of an environment with the requested packages in addition to `ownPackages`; null if none are
 * requested. The environment is created once for each list of packages, and locked while this process runs.
 */
async function packagesDirectory(dependencies: PythonBackendDependencies, signal: AbortSignal): Promise<string | null> {
  const { options, log, directories } = dependencies;
  const { pythonPackages: packages, python, pythonEnvironmentsBytes: bytesMax } = options;
  if (packages.length === 0) return null;
  const { DirectoryCache, createPythonEnvironment } = await import("@galatea/server/backends/python");
  const directory = join(directories.root, "python-packages");
  const kept = new DirectoryCache({ directory, bytesMax, clock: systemClock });
  const desired = {
    // The requested packages come first, so that an installer's errors name them.
    packages: [...packages, ...ownPackages],
    pythons: python === null ? knownPythons : [python],
    wheelsOnly: true,
  };
  const name = createHash("sha256").update(JSON.stringify(desired)).digest("hex").slice(0, 32);
  const make = async (files: string) => {
    await createPythonEnvironment(files, { ...desired, ...installing(log), signal });
    return null;
  };
  try {
    return (await kept.hold(name, make, signal)).directory;
  } catch (error) {
    signal.throwIfAborted();
    throw asDiskError(error, `'${kept.filesOf(name)}'`);
  }
}

/** Returns the options of package installers. */
function installing(log: Logger) {
  return {
    env: { ...installerEnvironment(), PIP_QUIET: "1" },
    clock: systemClock,
    onProgress: (line: string) => log.info(`python environment: ${line}`),
  };
}

interface RequestedPython {
  readonly packages: readonly string[];
  readonly pythons: readonly string[];
  readonly wheelsOnly: boolean;
}

async function prepare(
  { log, directories }: PythonDependencies,
  desired: RequestedPython,
  signal: AbortSignal,
): Promise<string> {
  const { preparePythonEnvironment } = await import("@galatea/server/backends/python");
  return await preparePythonEnvironment({
    ...desired,
    dataDirectory: directories.root,
    ...installing(log),
    signal,
  });
}

/** Returns the interpreter of this product's own environment; null if it was not created yet. */
export async function installedPython({ root }: DataDirectories): Promise<string | null> {
  const { findPythonEnvironment } = await import("@galatea/server/backends/python");
  const own = { packages: ownPackages, pythons: knownPythons, wheelsOnly: false };
  return findPythonEnvironment({ ...own, dataDirectory: root });
}

/** Resolves with true if `findPython` would not have to create an environment. */
export async function isPythonInstalled({ python, directories }: PythonDependencies): Promise<boolean> {
  return python !== null || (await installedPython(directories)) !== null;
}

export interface PythonBackendDependencies extends BackendDependencies {
  /** Searches `--backend-directory` and the installed frameworks. */
  readonly findRunner: FindPythonRunner;
}

export async function openPythonBackend(
  dependencies: PythonBackendDependencies,
  signal: AbortSignal,
): Promise<Backend> {
  const { options, plan, gpus, directories, log, findRunner, onConfinement } = dependencies;
  const { createPythonBackend, environmentDefaults, pythonBackendDefaults } =
    await import("@galatea/server/backends/python");
  const tenants = tenantOptions(dependencies);
  const python = { python: options.python, log, directories };
  return createPythonBackend({
    ...pythonBackendDefaults,
    ...environmentDefaults,
    tenants,
    environmentBytesMax: options.pythonEnvironmentsBytes,
    ignoresVariables: tenants !== null,
    hangKillMs: plan?.opened?.callMsMax ?? null,
    instancesOnDemandMax: options.pythonInstancesOnDemand,
    onConfinement,
    python: await findPython(python, signal),
    packagesDirectory: await packagesDirectory(dependencies, signal),
    gpuCount: gpus.count,
    gpuBytesOf: gpus.bytesOf,
    pythonEnv: withThreads(withGpuOrder(modelEnvironment(), gpus.count), options.pythonThreads),
    preImports: options.pythonPreimport,
    findRunner,
    sharedFileBytesMax: memoryShare({ machineBytes: totalmem(), cgroupBytes: process.constrainedMemory() }),
    environmentsDirectory: join(directories.cache, "python-environments"),
    workerDirectory,
    clock: systemClock,
    logger: log,
    print: modelOutput(process.stdout),
    random: Math.random,
  });
}
