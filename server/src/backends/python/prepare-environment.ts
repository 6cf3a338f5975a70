import { randomUUID, createHash } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/index.ts";
import { describeEnd, readProcessStart, spawnProcess, type SpawnedProcess } from "../../processes/index.ts";
import { delay } from "../../base/index.ts";

export interface PrepareOptions {
  /** The environment becomes `<dataDirectory>/python/<hash of the packages>`. */
  readonly dataDirectory: string;
  /** Requirements as pip reads them: "numpy", "tokenizers>=0.15". */
  readonly packages: readonly string[];
  /** Interpreters to try, best first; names are looked up in PATH. */
  readonly pythons: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Makes the product's Python environment, once: later calls find it and return at once. Several programs may call it at the same time.
 * Returns the interpreter's path. Throws an Error that names what is missing and the command that installs it.
 */
export async function preparePythonEnvironment(options: PrepareOptions): Promise<string> {
  const identity = createHash("sha256")
    .update(JSON.stringify([options.packages, 1]))
    .digest("hex")
    .slice(0, 16);
  const parent = join(options.dataDirectory, "python");
  const directory = join(parent, identity);
  const python = join(directory, "bin", "python");
  if (await isFile(join(directory, "ready"))) return python;
  await mkdir(parent, { recursive: true });
  const lockPath = `${directory}.lock`;
  await takeLock(lockPath, options);
  try {
    if (await isFile(join(directory, "ready"))) return python;
    // What is there without its stamp was cut short. The environment is made where it stays: its scripts name their place.
    await rm(directory, { recursive: true, force: true });
    await makeEnvironment(directory, options);
    await writeFile(join(directory, "ready.part"), `${options.packages.join("\n")}\n`);
    await rename(join(directory, "ready.part"), join(directory, "ready"));
    return python;
  } finally {
    await rm(lockPath, { force: true });
  }
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() ?? false;
}

/** One maker at a time; the lock of a process that is gone is nobody's. */
async function takeLock(path: string, options: PrepareOptions): Promise<void> {
  const own = `${process.pid} ${readProcessStart(process.pid) ?? 0} ${randomUUID()}`;
  for (let said = false; ; said = true) {
    try {
      await using file = await open(path, "wx");
      await file.writeFile(own);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const [pid, startTicks] = (await readFile(path, "utf8").catch(() => "")).split(" ").map(Number);
    if (pid !== undefined && startTicks !== undefined && readProcessStart(pid) !== startTicks)
      await rm(path, { force: true });
    else {
      if (!said) options.onProgress("waiting for another process that makes the Python environment");
      await delay(options.clock, 200, options.signal);
    }
  }
}

async function makeEnvironment(directory: string, options: PrepareOptions): Promise<void> {
  const python = await findPython(options);
  if (await canRun("uv", ["--version"], options)) {
    options.onProgress("making the Python environment with uv");
    await run("uv", ["venv", "--python", python, directory], options);
    await run("uv", ["pip", "install", "--python", join(directory, "bin", "python"), ...options.packages], options);
    return;
  }
  options.onProgress(`making the Python environment with ${python} -m venv`);
  if (!(await canRun(python, ["-c", "import venv, ensurepip"], options))) {
    throw new Error(
      `${python} cannot make environments: its venv module is missing. Install it with: apt-get install python3-venv`,
    );
  }
  await run(python, ["-m", "venv", directory], options);
  options.onProgress(`installing ${options.packages.join(", ")}`);
  const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", ...options.packages];
  await run(join(directory, "bin", "python"), pip, options);
}

async function findPython(options: PrepareOptions): Promise<string> {
  const check = "import sys; sys.exit(0 if sys.version_info >= (3, 9) else 1)";
  for (const python of options.pythons) if (await canRun(python, ["-c", check], options)) return python;
  throw new Error(
    `no Python 3.9 or newer was found (looked for ${options.pythons.join(", ")}). Install it with: apt-get install python3 python3-venv`,
  );
}

function start(command: string, args: readonly string[], options: PrepareOptions): Promise<SpawnedProcess> {
  return spawnProcess({
    command,
    args,
    env: options.env,
    cwd: null,
    extraFds: [],
    onLine: (line) => options.onProgress(line),
    onExit: () => {},
    clock: options.clock,
  });
}

async function canRun(command: string, args: readonly string[], options: PrepareOptions): Promise<boolean> {
  try {
    const quiet = { ...options, onProgress: () => {} };
    await using child = await start(command, args, quiet);
    return (await child.ended).exitCode === 0;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "EACCES") return false;
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
  const words = child.outputTail().join("\n");
  throw new Error(`making the Python environment failed: ${command} ${args.join(" ")}: ${describeEnd(end)}\n${words}`);
}
