import { describeEnd, spawnProcess, type SpawnedProcess } from "@galatea/base/processes";
import type { Clock } from "@galatea/base";
import { installerSentence } from "./installer-failure.ts";

/** What programs that make environments run with. */
export interface InstallerOptions {
  /** The environment that is made, and what is put into it: for sentences about failures. */
  readonly directory: string;
  readonly packages: readonly string[];
  /** What the installers run with, and nothing else: PATH, HOME, PIP_ and UV_ variables. */
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

/** uv reads none of pip's settings: where only pip is told where packages come from, uv would take them from elsewhere. */
export function mayUseUv(env: InstallerOptions["env"]): boolean {
  return uvSources.some((name) => env[name]) || !pipSources.some((name) => env[name]);
}

/**
 * The path of the first of `pythons` that is `oldest` ("3.9") or newer, and not newer than `newest`: by its name alone uv would look for one
 * by rules of its own, and may find another.
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

/** An environment with pip, made by the interpreter's own venv. */
export async function makeVenv(python: string, options: InstallerOptions): Promise<void> {
  if (!(await canRun(python, ["-c", "import venv, ensurepip"], options))) {
    throw new Error(
      `${python} cannot make environments: its venv module is missing. Install it with: apt-get install python3-venv`,
    );
  }
  await runInstaller(python, ["-m", "venv", options.directory], options);
}

/**
 * A container's variables are its owner's, and installers run as the server: no module may come from PYTHONPATH, and none from the user's
 * site below HOME, whose `.pth` files run when the interpreter starts.
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
    // The working directory is the user's: a uv.toml there would configure uv, a venv.py there would be imported.
    cwd: "/",
    extraFds: [],
    onLine: (line) => options.onProgress(line),
    onExit: () => {},
    clock: options.clock,
  });
}

/** Whether the command is there and succeeds. */
export async function canRun(command: string, args: readonly string[], options: InstallerOptions): Promise<boolean> {
  return (await linesOf(command, args, options)) !== null;
}

/** The last lines of what the command wrote; null where it is absent or fails. */
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

/** Runs to the end; gives the last lines. Throws the signal's reason, or one sentence that tells why the installer failed. */
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
  throw new Error(installerSentence({ command, args, end: describeEnd(end), words, directory, packages }));
}
