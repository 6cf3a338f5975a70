import { createHash } from "node:crypto";
import { rename, rm, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Clock } from "@galatea/base";
import { lockDirectory } from "@galatea/base/processes";
import { asDiskError, delay, makeDirectory } from "@galatea/base";
import { canRun, findInterpreter, createVenv, mayUseUv, runInstaller } from "./installer-process.ts";

export interface PrepareOptions {
  /** Data directory. The environment is created in `<dataDirectory>/python/<hash of the packages>`. */
  readonly dataDirectory: string;
  /** Requirements as pip reads them: "numpy", "tokenizers>=0.15". */
  readonly packages: readonly string[];
  /** True to install only wheels. Source packages would run their code during the installation. */
  readonly wheelsOnly: boolean;
  /** Interpreters to try, in order of preference; names are looked up in PATH. */
  readonly pythons: readonly string[];
  /** All environment variables of the installers, including PATH, HOME, and the PIP_ and UV_ variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}

export type CreateEnvironmentOptions = Omit<PrepareOptions, "dataDirectory">;

type Location = Pick<PrepareOptions, "dataDirectory" | "packages" | "wheelsOnly" | "pythons">;

/** Returns the environment's interpreter; null when the environment was not created. */
export async function findPythonEnvironment(location: Location): Promise<string | null> {
  const { directory, python } = placeOf(location);
  const stamp = await stat(join(directory, "ready")).catch(() => null);
  return stamp?.isFile() === true ? python : null;
}

function placeOf({ dataDirectory, packages, wheelsOnly, pythons }: Location) {
  const identity = createHash("sha256")
    .update(JSON.stringify(wheelsOnly ? [packages, 2, pythons] : [packages, 1]))
    .digest("hex")
    .slice(0, 16);
  const parent = resolve(dataDirectory, "python");
  const directory = join(parent, identity);
  return { parent, directory, python: join(directory, "bin", "python") };
}

/**
 * Creates the environment for models without one of their own, unless it exists. Several programs may call this at the same time. Returns
 * the interpreter's path. Throws an Error that names the missing program and the command that installs it.
 */
export async function preparePythonEnvironment(options: PrepareOptions): Promise<string> {
  const created = await findPythonEnvironment(options);
  if (created !== null) return created;
  const { parent, directory, python } = placeOf(options);
  await makeDirectory(parent);
  using _lock = await acquireInstallLock(parent, options);
  if ((await findPythonEnvironment(options)) !== null) return python;
  // A directory without its stamp file is incomplete, and is removed. The environment is created in its final directory, because its
  // scripts contain that path.
  try {
    await rm(directory, { recursive: true, force: true });
    await createPythonEnvironment(directory, options);
    await writeFile(join(directory, "ready.part"), `${options.packages.join("\n")}\n`);
    await rename(join(directory, "ready.part"), join(directory, "ready"));
  } catch (error) {
    throw asDiskError(error, `'${directory}'`);
  }
  return python;
}

/** Waits for a lock that only one process can have at a time. */
export async function acquireInstallLock(
  parent: string,
  options: Pick<PrepareOptions, "clock" | "onProgress" | "signal">,
): Promise<Disposable> {
  for (let said = false; ; said = true) {
    const lock = lockDirectory(parent);
    if (lock !== null) return lock;
    if (!said) options.onProgress("waiting for another process that makes the Python environment");
    await delay(options.clock, 200, options.signal);
  }
}

/**
 * Creates an environment with the packages in `directory`, which must be the environment's final location, because the scripts contain the
 * path. Throws the same errors as preparePythonEnvironment.
 */
export async function createPythonEnvironment(directory: string, options: CreateEnvironmentOptions): Promise<void> {
  const own = { ...options, directory };
  const python = await findInterpreter(options.pythons, { oldest: "3.9", newest: null }, own);
  if (!mayUseUv(options.env) || !(await canRun("uv", ["--version"], own)))
    return makeWithPip(python, directory, options);
  try {
    await makeWithUv(python, directory, options);
  } catch (error) {
    options.signal.throwIfAborted();
    options.onProgress((error as Error).message);
    options.onProgress("uv could not make the Python environment; pip is tried instead");
    await rm(directory, { recursive: true, force: true });
    await makeWithPip(python, directory, options);
  }
}

async function makeWithUv(python: string, directory: string, options: CreateEnvironmentOptions): Promise<void> {
  options.onProgress(`making the Python environment with uv and ${python}`);
  const own = { ...options, directory };
  await runInstaller("uv", ["--quiet", "venv", "--python", python, directory], own);
  options.onProgress(`installing ${options.packages.join(", ")}`);
  // The packages are compiled during the installation. Otherwise each of the first workers would compile them when it starts.
  const install = ["--quiet", "pip", "install", "--compile-bytecode", "--python", join(directory, "bin", "python")];
  await runInstaller("uv", [...install, ...wheelsOnly(options), ...options.packages], own);
}

async function makeWithPip(python: string, directory: string, options: CreateEnvironmentOptions): Promise<void> {
  options.onProgress(`making the Python environment with ${python} -m venv`);
  const own = { ...options, directory };
  await createVenv(python, own);
  options.onProgress(`installing ${options.packages.join(", ")}`);
  const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input"];
  await runInstaller(join(directory, "bin", "python"), [...pip, ...wheelsOnly(options), ...options.packages], own);
}

function wheelsOnly(options: CreateEnvironmentOptions): readonly string[] {
  return options.wheelsOnly ? ["--only-binary", ":all:"] : [];
}
