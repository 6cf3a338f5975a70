import { createHash } from "node:crypto";
import { rename, rm, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Clock } from "../../base/index.ts";
import { describeEnd, lockDirectory, spawnProcess, type SpawnedProcess } from "../../processes/index.ts";
import { asDiskError, delay, makeDirectory } from "../../base/index.ts";
import { installerSentence } from "./installer-failure.ts";

export interface PrepareOptions {
  /** The environment becomes `<dataDirectory>/python/<hash of the packages>`. */
  readonly dataDirectory: string;
  /** Requirements as pip reads them: "numpy", "tokenizers>=0.15". */
  readonly packages: readonly string[];
  /** Whether packages are taken as wheels only: then no code of theirs runs while they are installed. */
  readonly wheelsOnly: boolean;
  /** Interpreters to try, best first; names are looked up in PATH. */
  readonly pythons: readonly string[];
  /** What the installers run with, and nothing else: PATH, HOME, PIP_ and UV_ variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}

type Place = Pick<PrepareOptions, "dataDirectory" | "packages" | "wheelsOnly" | "pythons">;

/** The interpreter of the environment where it has been made; null where it has not. */
export async function madePythonEnvironment(place: Place): Promise<string | null> {
  const { directory, python } = placeOf(place);
  const stamp = await stat(join(directory, "ready")).catch(() => null);
  return stamp?.isFile() === true ? python : null;
}

function placeOf({ dataDirectory, packages, wheelsOnly, pythons }: Place) {
  const identity = createHash("sha256")
    .update(JSON.stringify(wheelsOnly ? [packages, 1, pythons] : [packages, 1]))
    .digest("hex")
    .slice(0, 16);
  const parent = resolve(dataDirectory, "python");
  const directory = join(parent, identity);
  return { parent, directory, python: join(directory, "bin", "python") };
}

/**
 * Makes the product's Python environment, once: later calls find it and return at once. Several programs may call it at the same time.
 * Returns the interpreter's path. Throws an Error that names what is missing and the command that installs it.
 */
export async function preparePythonEnvironment(options: PrepareOptions): Promise<string> {
  const made = await madePythonEnvironment(options);
  if (made !== null) return made;
  const { parent, directory, python } = placeOf(options);
  await makeDirectory(parent);
  using _turn = await takeTurn(parent, options);
  if ((await madePythonEnvironment(options)) !== null) return python;
  // What is there without its stamp was cut short. The environment is made where it stays: its scripts name their place.
  try {
    await rm(directory, { recursive: true, force: true });
    await makeEnvironment(directory, options);
    await writeFile(join(directory, "ready.part"), `${options.packages.join("\n")}\n`);
    await rename(join(directory, "ready.part"), join(directory, "ready"));
  } catch (error) {
    throw asDiskError(error, `'${directory}'`);
  }
  return python;
}

/** One maker at a time, whichever process it lives in. */
async function takeTurn(parent: string, options: PrepareOptions): Promise<Disposable> {
  for (let said = false; ; said = true) {
    const lock = lockDirectory(parent);
    if (lock !== null) return lock;
    if (!said) options.onProgress("waiting for another process that makes the Python environment");
    await delay(options.clock, 200, options.signal);
  }
}

async function makeEnvironment(directory: string, options: PrepareOptions): Promise<void> {
  const python = await findPython(options);
  if (!mayUseUv(options.env) || !(await canRun("uv", ["--version"], options)))
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

const pipSources = ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_CONFIG_FILE"];
const uvSources = [
  "UV_DEFAULT_INDEX",
  "UV_INDEX",
  "UV_INDEX_URL",
  "UV_EXTRA_INDEX_URL",
  "UV_FIND_LINKS",
  "UV_CONFIG_FILE",
];

/** uv reads none of pip's settings: where only pip is told where packages come from, uv would take them from elsewhere. */
function mayUseUv(env: PrepareOptions["env"]): boolean {
  return uvSources.some((name) => env[name]) || !pipSources.some((name) => env[name]);
}

async function makeWithUv(python: string, directory: string, options: PrepareOptions): Promise<void> {
  options.onProgress(`making the Python environment with uv and ${python}`);
  await run("uv", ["--quiet", "venv", "--python", python, directory], options);
  options.onProgress(`installing ${options.packages.join(", ")}`);
  // pip compiles what it installs as well; otherwise each of the first workers would do it while it starts.
  const install = ["--quiet", "pip", "install", "--compile-bytecode", "--python", join(directory, "bin", "python")];
  await run("uv", [...install, ...wheelsOnly(options), ...options.packages], options);
}

async function makeWithPip(python: string, directory: string, options: PrepareOptions): Promise<void> {
  options.onProgress(`making the Python environment with ${python} -m venv`);
  if (!(await canRun(python, ["-c", "import venv, ensurepip"], options))) {
    throw new Error(
      `${python} cannot make environments: its venv module is missing. Install it with: apt-get install python3-venv`,
    );
  }
  await run(python, ["-m", "venv", directory], options);
  options.onProgress(`installing ${options.packages.join(", ")}`);
  const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input"];
  await run(join(directory, "bin", "python"), [...pip, ...wheelsOnly(options), ...options.packages], options);
}

function wheelsOnly(options: PrepareOptions): readonly string[] {
  return options.wheelsOnly ? ["--only-binary", ":all:"] : [];
}

/** The interpreter's own path: by its name alone uv would look for one by rules of its own, and may find another. */
async function findPython(options: PrepareOptions): Promise<string> {
  const check = "import sys; sys.version_info >= (3, 9) or sys.exit(1); print('executable=' + sys.executable)";
  for (const python of options.pythons) {
    const lines = await linesOf(python, ["-c", check], options);
    const found = lines?.find((line) => line.startsWith("executable="));
    if (found !== undefined) return found.slice("executable=".length);
  }
  throw new Error(
    `no Python 3.9 or newer was found (looked for ${options.pythons.join(", ")}). Install it with: apt-get install python3 python3-venv`,
  );
}

function start(command: string, args: readonly string[], options: PrepareOptions): Promise<SpawnedProcess> {
  return spawnProcess({
    command,
    args,
    env: options.env,
    // The working directory is the user's: a uv.toml there would configure uv, a venv.py there would be imported.
    cwd: "/",
    extraFds: [],
    onLine: (line) => options.onProgress(line),
    onExit: () => {},
    clock: options.clock,
  });
}

async function canRun(command: string, args: readonly string[], options: PrepareOptions): Promise<boolean> {
  return (await linesOf(command, args, options)) !== null;
}

/** The last lines of what the command wrote; null where it is absent or fails. */
async function linesOf(
  command: string,
  args: readonly string[],
  options: PrepareOptions,
): Promise<readonly string[] | null> {
  try {
    const quiet = { ...options, onProgress: () => {} };
    await using child = await start(command, args, quiet);
    return (await child.ended).exitCode === 0 ? child.outputTail() : null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "EACCES") return null;
    throw error;
  }
}

async function run(command: string, args: readonly string[], options: PrepareOptions): Promise<void> {
  await using child = await start(command, args, options);
  const onAbort = () => void child.stop(1000);
  options.signal.addEventListener("abort", onAbort, { once: true });
  if (options.signal.aborted) onAbort();
  const end = await child.ended;
  options.signal.removeEventListener("abort", onAbort);
  options.signal.throwIfAborted();
  if (end.exitCode === 0) return;
  const { directory } = placeOf(options);
  const words = child.outputTail();
  throw new Error(
    installerSentence({ command, args, end: describeEnd(end), words, directory, packages: options.packages }),
  );
}
