import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, readlink, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { InferenceError } from "@galatea/base";
import type { DirectoryLease, DirectoryCache } from "./directory-cache.ts";
import { unpackEnvironment } from "./packed-environment.ts";
import type { PythonEnvironment } from "./python-environment.ts";
import type { RunnerEnvironment } from "./runners.ts";

export interface EnvironmentOptions {
  /**
   * True if interpreters that are not confined must ignore environment variables from models. Workers read the variables after their
   * confinement.
   */
  readonly ignoresVariables: boolean;
  /** Interpreter for models without an environment of their own. */
  readonly python: string;
  /** Environment variables of every interpreter. */
  readonly pythonEnv: Readonly<Record<string, string>>;
  /**
   * Directory of the environment with the packages that the operator, or the container's owner, has requested. Null: `python` is used
   * unchanged.
   */
  readonly packagesDirectory: string | null;
  /** Directory that contains the unpacked environments. Their names are hashes of their content. */
  readonly environmentsDirectory: string;
  /** Maximum total size in bytes of the unpacked environments, not counting those in use. */
  readonly environmentBytesMax: number;
  readonly environmentEntriesMax: number;
}

/**
 * A lease of an environment. Its files are kept until the lease is disposed. The lease must not be disposed while the environment's
 * interpreter may start or import modules.
 */
export interface EnvironmentLease extends Disposable {
  readonly environment: PythonEnvironment;
}

/** The environment that a model requests. */
export interface EnvironmentRequest {
  readonly modelDirectory: string;
  /** Value of EXECUTION_ENV_PATH. */
  readonly executionEnvPath: string | undefined;
  /** Directories that may contain the environment, with links resolved. Null: any location is allowed. */
  readonly within: readonly string[] | null;
}

export const environmentDefaults = { environmentEntriesMax: 500_000 } as const;

const modelDirectoryPrefix = "$$TRITON_MODEL_DIRECTORY";

/**
 * Returns the environment that a model requests with EXECUTION_ENV_PATH: a directory with bin/activate, or a conda-pack archive. An archive
 * is unpacked once for all models with the same bytes. Relative paths are relative to the model's directory.
 */
export async function requestedEnvironment(
  options: EnvironmentOptions,
  unpacked: DirectoryCache,
  { modelDirectory, executionEnvPath, within }: EnvironmentRequest,
  signal: AbortSignal,
): Promise<EnvironmentLease> {
  if (executionEnvPath === undefined || executionEnvPath === "")
    return permanentLease(
      options.packagesDirectory === null
        ? operatorEnvironment(options)
        : packagesEnvironment(options, options.packagesDirectory),
    );
  const requested = environmentPath(executionEnvPath, modelDirectory);
  // The links are resolved once, so that a link that changes after the check cannot redirect the later read.
  const path = await realpath(requested).catch(() => null);
  const found = path === null ? null : await stat(path).catch(() => null);
  if (path === null || found === null)
    throw new InferenceError("INVALID_ARG", `EXECUTION_ENV_PATH '${executionEnvPath}' does not exist: ${requested}`);
  if (within !== null && !(await liesWithin(path, within)))
    throw new InferenceError("INVALID_ARG", `EXECUTION_ENV_PATH '${executionEnvPath}' is outside the model's archive`);
  if (found.isDirectory()) return permanentLease(await environmentIn(options, path));
  using leases = new DisposableStack();
  const { directory } = leases.use(await unpack(options, unpacked, path, signal));
  const environment = await environmentIn(options, directory);
  const owned = leases.move();
  return { environment, [Symbol.dispose]: () => owned.dispose() };
}

const ownHint =
  "Add its package with --python-packages, of an endpoint with GALATEA_PYTHON_PACKAGES in the model's Environment, or give an interpreter " +
  "that has it with --python. Model files of PyTorch, TensorFlow, XGBoost and scikit-learn are served by backends that " +
  "`galatea model add` sets up.";
const frameworkHint =
  "Its package is not in the environment that `galatea model add` made for this backend: name it in the requirements.txt beside the script, " +
  "or bring an environment with EXECUTION_ENV_PATH.";

/** Returns a lease for an environment that is never deleted. */
export function permanentLease(environment: PythonEnvironment): EnvironmentLease {
  return { environment, [Symbol.dispose]: () => {} };
}

/**
 * Returns the environment with requested packages. Packages may run code when an interpreter starts. In a platform's container, the
 * packages belong to a tenant and are treated like an environment that a model ships.
 */
function packagesEnvironment({ pythonEnv }: EnvironmentOptions, directory: string): PythonEnvironment {
  return {
    key: directory,
    command: [join(directory, "bin", "python")],
    env: pythonEnv,
    directory,
    imports: [],
    packageHint: ownHint,
  };
}

/** Returns the environment for models without one of their own. */
export function operatorEnvironment(options: EnvironmentOptions): PythonEnvironment {
  const { python, pythonEnv } = options;
  const command = [python, ...interpreterFlags(options)];
  return { key: python, command, env: pythonEnv, directory: null, imports: [], packageHint: ownHint };
}

/** Returns the environment for models of a python-based backend without one of their own. The environment belongs to the operator. */
export function backendEnvironment(
  options: EnvironmentOptions,
  { directory, imports }: RunnerEnvironment,
): PythonEnvironment {
  const command = [join(directory, "bin", "python"), ...interpreterFlags(options)];
  return { key: directory, command, env: options.pythonEnv, directory: null, imports, packageHint: frameworkHint };
}

/**
 * Returns flags that make the interpreter ignore the user's modules. Without these flags, a `sitecustomize.py` on PYTHONPATH, or modules in
 * HOME, would run when an interpreter of the operator starts.
 */
function interpreterFlags({ ignoresVariables }: EnvironmentOptions): readonly string[] {
  return ignoresVariables ? ["-E", "-s"] : [];
}

async function liesWithin(path: string, directories: readonly string[]): Promise<boolean> {
  for (const directory of directories) {
    const real = await realpath(directory).catch(() => null);
    if (real !== null && (path === real || path.startsWith(`${real}/`))) return true;
  }
  return false;
}

/** Returns the absolute path of the environment that a model requests. */
export function environmentPath(executionEnvPath: string, modelDirectory: string): string {
  if (executionEnvPath.startsWith(modelDirectoryPrefix))
    return join(modelDirectory, executionEnvPath.slice(modelDirectoryPrefix.length));
  return isAbsolute(executionEnvPath) ? executionEnvPath : resolve(modelDirectory, executionEnvPath);
}

async function absence(directory: string, file: string): Promise<string> {
  const name = file.slice(directory.length + 1);
  const target = await readlink(file).catch(() => null);
  if (target === null) return `the Python environment ${directory} has no ${name}`;
  return `${name} of the Python environment ${directory} is a link to ${target}, which does not exist on this machine`;
}

async function environmentIn(options: EnvironmentOptions, directory: string): Promise<PythonEnvironment> {
  const python = join(directory, "bin", "python");
  const activate = join(directory, "bin", "activate");
  for (const file of [python, activate]) {
    await access(file).catch(async () => {
      throw new InferenceError("INVALID_ARG", await absence(directory, file));
    });
  }
  const { LD_LIBRARY_PATH: inherited } = options.pythonEnv;
  const libraryPath = [join(directory, "lib"), ...(inherited ? [inherited] : [])].join(":");
  // Activation scripts set variables that native libraries of the environment need. They are shell scripts, therefore bash runs them before
  // the interpreter.
  const script = 'source "$1/bin/activate" && shift && exec "$@"';
  return {
    key: directory,
    command: ["/bin/bash", "-c", script, "activate", directory, python],
    env: { ...options.pythonEnv, LD_LIBRARY_PATH: libraryPath },
    directory,
    imports: [],
    packageHint: "Add its package to the environment that EXECUTION_ENV_PATH names.",
  };
}

/** Unpacks an archive to a directory whose name is a hash of the content. Does nothing if the directory exists. */
async function unpack(
  options: EnvironmentOptions,
  unpacked: DirectoryCache,
  archive: string,
  signal: AbortSignal,
): Promise<DirectoryLease> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(archive), hash, { signal });
  const limits = { bytesMax: options.environmentBytesMax, entriesMax: options.environmentEntriesMax };
  const make = (files: string) => unpackEnvironment(archive, files, limits, signal);
  return await unpacked.hold(hash.digest("hex"), make, signal);
}
