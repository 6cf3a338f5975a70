import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, readlink, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { InferenceError } from "@galatea/base";
import type { DirectoryLease, KeptDirectories } from "./kept-directories.ts";
import { unpackEnvironment } from "./packed-environment.ts";
import type { PythonEnvironment } from "./python-environment.ts";
import type { RunnerEnvironment } from "./runners.ts";

export interface EnvironmentOptions {
  /** True if unconfined interpreters must ignore the environment variables of models; workers read them after their confinement. */
  readonly ignoresVariables: boolean;
  /** Interpreter of models without an environment. */
  readonly python: string;
  /** Environment variables of every interpreter. */
  readonly pythonEnv: Readonly<Record<string, string>>;
  /** Environment of models without their own, when the operator or the container's owner requested packages; null: `python` is used. */
  readonly packagesDirectory: string | null;
  /** Directory of unpacked environments, by content. */
  readonly environmentsDirectory: string;
  /** Maximum size of all unpacked environments together, without those in use. */
  readonly environmentBytesMax: number;
  readonly environmentEntriesMax: number;
}

/** A lease of an environment, which stays in place until this is disposed: as long as its interpreter may start or import. */
export interface EnvironmentLease extends Disposable {
  readonly environment: PythonEnvironment;
}

/** A model that requests an environment. */
export interface EnvironmentRequest {
  readonly modelDirectory: string;
  /** Value of EXECUTION_ENV_PATH. */
  readonly executionEnvPath: string | undefined;
  /** Directories that must contain its environment, with links resolved; null: anywhere. */
  readonly within: readonly string[] | null;
}

export const environmentDefaults = { environmentEntriesMax: 500_000 } as const;

const modelDirectoryPrefix = "$$TRITON_MODEL_DIRECTORY";

/**
 * Returns the environment that a model requests with EXECUTION_ENV_PATH: a directory with bin/activate, or a conda-pack archive, which is
 * unpacked once for all models with the same bytes. Relative paths are below the model's directory.
 */
export async function environmentOf(
  options: EnvironmentOptions,
  unpacked: KeptDirectories,
  { modelDirectory, executionEnvPath, within }: EnvironmentRequest,
  signal: AbortSignal,
): Promise<EnvironmentLease> {
  if (executionEnvPath === undefined || executionEnvPath === "")
    return unheld(
      options.packagesDirectory === null
        ? operatorsEnvironment(options)
        : packagesEnvironment(options, options.packagesDirectory),
    );
  const asked = environmentPath(executionEnvPath, modelDirectory);
  // Links are resolved once, so that the file that is read is the one that was checked.
  const path = await realpath(asked).catch(() => null);
  const found = path === null ? null : await stat(path).catch(() => null);
  if (path === null || found === null)
    throw new InferenceError("INVALID_ARG", `EXECUTION_ENV_PATH '${executionEnvPath}' does not exist: ${asked}`);
  if (within !== null && !(await liesWithin(path, within)))
    throw new InferenceError("INVALID_ARG", `EXECUTION_ENV_PATH '${executionEnvPath}' is outside the model's archive`);
  if (found.isDirectory()) return unheld(await environmentIn(options, path));
  using holding = new DisposableStack();
  const { directory } = holding.use(await unpack(options, unpacked, path, signal));
  const environment = await environmentIn(options, directory);
  const held = holding.move();
  return { environment, [Symbol.dispose]: () => held.dispose() };
}

const ownHint =
  "Add its package with --python-packages, of an endpoint with GALATEA_PYTHON_PACKAGES in the model's Environment, or give an interpreter " +
  "that has it with --python. Model files of PyTorch, TensorFlow, XGBoost and scikit-learn are served by backends that " +
  "`galatea model add` sets up.";
const frameworkHint =
  "Its package is not in the environment that `galatea model add` made for this backend: name it in the requirements.txt beside the script, " +
  "or bring an environment with EXECUTION_ENV_PATH.";

/** Returns a lease of an environment that is never deleted. */
export function unheld(environment: PythonEnvironment): EnvironmentLease {
  return { environment, [Symbol.dispose]: () => {} };
}

/**
 * Packages may run code when an interpreter starts. In the containers of a platform they belong to a tenant, like an environment that a
 * model brings.
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

/** Returns the environment of models that bring none. */
export function operatorsEnvironment(options: EnvironmentOptions): PythonEnvironment {
  const { python, pythonEnv } = options;
  const command = [python, ...interpreterFlags(options)];
  return { key: python, command, env: pythonEnv, directory: null, imports: [], packageHint: ownHint };
}

/** Returns the environment of a runner's models that bring none, which also belongs to the operator. */
export function environmentOfRunner(
  options: EnvironmentOptions,
  { directory, imports }: RunnerEnvironment,
): PythonEnvironment {
  const command = [join(directory, "bin", "python"), ...interpreterFlags(options)];
  return { key: directory, command, env: options.pythonEnv, directory: null, imports, packageHint: frameworkHint };
}

/**
 * Without these flags, a `sitecustomize.py` on PYTHONPATH, or a user's site below HOME, would run when an interpreter of the operator
 * starts.
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

/** Returns the path of the environment that a model requests. */
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
  // Activation scripts set variables that native libraries of the environment need; they are shell scripts, so a shell runs them.
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

/** Unpacks an archive into a directory named by its content, unless that exists. */
async function unpack(
  options: EnvironmentOptions,
  unpacked: KeptDirectories,
  archive: string,
  signal: AbortSignal,
): Promise<DirectoryLease> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(archive), hash, { signal });
  const limits = { bytesMax: options.environmentBytesMax, entriesMax: options.environmentEntriesMax };
  const make = (files: string) => unpackEnvironment(archive, files, limits, signal);
  return await unpacked.hold(hash.digest("hex"), make, signal);
}
