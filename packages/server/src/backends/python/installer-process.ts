import { describeProcessEnd, spawnProcess, type SpawnedProcess } from "@galatea/base/processes";
import type { Clock } from "@galatea/base";
import { installerErrorText } from "./installer-failure.ts";

/** Options of programs that create environments. */
export interface InstallerOptions {
  /** Directory and packages of the environment that is created, for error messages. */
  readonly directory: string;
  readonly packages: readonly string[];
  /** All environment variables of the installers, including PATH, HOME, and the PIP_ and UV_ variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
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

/** Returns whether uv may be used. uv ignores pip's settings. If only those settings name the package index, uv would use another index. */
export function mayUseUv(env: InstallerOptions["env"]): boolean {
  return uvSources.some((name) => env[name]) || !pipSources.some((name) => env[name]);
}

/**
 * Returns the path of the first interpreter in `pythons` whose version is at least `oldest` ("3.9") and at most `newest`. The result is a
 * path, because uv searches for a name by its own rules and might find another interpreter.
 */
export async function findInterpreter(
  pythons: readonly string[],
  { oldest, newest }: { readonly oldest: string; readonly newest: string | null },
  options: InstallerOptions,
): Promise<string> {
  const tuple = (version: string) => `(${version.replace(".", ", ")})`;
  const fits = `${tuple(oldest)} <= sys.version_info[:2]${newest === null ? "" : ` <= ${tuple(newest)}`}`;
  const check = `import sys; ${fits} or sys.exit(1); print('executable=' + sys.executable)`;
  for (const python of pythons) {
    const lines = await linesOf(python, ["-c", check], options);
    const found = lines?.find((line) => line.startsWith("executable="));
    if (found !== undefined) return found.slice("executable=".length);
  }
  throw new Error(
    `no Python ${oldest} ${newest === null ? "or newer" : `to ${newest}`} was found (looked for ${pythons.join(", ")}). ` +
      "Install it with: apt-get install python3 python3-venv",
  );
}

/** Creates an environment with pip, using the interpreter's own venv module. */
export async function createVenv(python: string, options: InstallerOptions): Promise<void> {
  if (!(await canRun(python, ["-c", "import venv, ensurepip"], options))) {
    throw new Error(
      `${python} cannot make environments: its venv module is missing. Install it with: apt-get install python3-venv`,
    );
  }
  await runInstaller(python, ["-m", "venv", options.directory], options);
}

/**
 * Removes variables that would make Python import the container owner's modules, because installers run with the server's permissions. No
 * module may come from PYTHONPATH, or from the user's site directory in HOME, whose `.pth` files run when the interpreter starts.
 */
function withoutForeignModules(env: InstallerOptions["env"]): Readonly<Record<string, string>> {
  const kept = Object.entries(env).filter(([name]) => !name.startsWith("PYTHON"));
  return { ...Object.fromEntries(kept), PYTHONNOUSERSITE: "1" };
}

function start(command: string, args: readonly string[], options: InstallerOptions): Promise<SpawnedProcess> {
  return spawnProcess({
    command,
    args,
    env: withoutForeignModules(options.env),
    // The user's working directory is not used, because a uv.toml in it would configure uv, and a venv.py in it would be imported.
    cwd: "/",
    extraFds: [],
    onLine: (line) => options.onProgress(line),
    onExit: () => {},
    clock: options.clock,
  });
}

/** Returns whether the command exists and succeeds. */
export async function canRun(command: string, args: readonly string[], options: InstallerOptions): Promise<boolean> {
  return (await linesOf(command, args, options)) !== null;
}

/** Returns the last lines of the command's output; null if the command does not exist or fails. */
async function linesOf(
  command: string,
  args: readonly string[],
  options: InstallerOptions,
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

/**
 * Runs a program until it ends, and returns the last lines of its output. Throws the signal's reason, or an error with one sentence about
 * the failure.
 */
export async function runInstaller(
  command: string,
  args: readonly string[],
  options: InstallerOptions,
): Promise<readonly string[]> {
  await using child = await start(command, args, options);
  const onAbort = () => void child.stop(1000);
  options.signal.addEventListener("abort", onAbort, { once: true });
  if (options.signal.aborted) onAbort();
  const end = await child.ended;
  options.signal.removeEventListener("abort", onAbort);
  options.signal.throwIfAborted();
  const words = child.outputTail();
  if (end.exitCode === 0) return words;
  const { directory, packages } = options;
  throw new Error(installerErrorText({ command, args, end: describeProcessEnd(end), words, directory, packages }));
}
