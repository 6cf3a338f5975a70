import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { acquireLock } from "./lock.ts";
import { prepareOracle } from "./oracle-files.ts";
import { recipes, rivalRecipes, type EnvironmentName, type Recipe, type RivalName } from "./recipes.ts";

export interface Environment {
  readonly name: EnvironmentName | RivalName;
  readonly directory: string;
  readonly python: string;
  readonly sitePackages: string;
  /** Where this Python's shared library lies. */
  readonly pythonLibraries: string;
  /** `name==version` of everything in it. */
  readonly packages: readonly string[];
}

export interface MakingOptions {
  readonly signal?: AbortSignal;
  /** Told each command before it runs and each line that it writes. */
  readonly progress?: (line: string) => void;
}

const stampName = "complete.json";

/**
 * The environment's directory below `cacheDirectory`, made when it is not there yet (half a minute with a warm package
 * cache). Throws with the failed command and the end of its output.
 */
export async function ensureEnvironment(
  cacheDirectory: string,
  name: EnvironmentName | RivalName,
  options: MakingOptions = {},
): Promise<Environment> {
  const recipe: Recipe = { ...recipes, ...rivalRecipes }[name];
  const key = createHash("sha256").update(JSON.stringify(recipe)).digest("hex").slice(0, 12);
  const directory = join(cacheDirectory, "environments", `${name}-${key}`);
  const found = await readStamp(directory);
  if (found !== null) return found;
  await mkdir(join(cacheDirectory, "environments"), { recursive: true });
  const signal = options.signal ?? new AbortController().signal;
  using _lock = await acquireLock(`${directory}.making`, signal);
  return (
    (await readStamp(directory)) ?? (await make(name, recipe, directory, { progress: () => {}, ...options, signal }))
  );
}

async function make(
  name: EnvironmentName | RivalName,
  recipe: Recipe,
  directory: string,
  options: Required<MakingOptions>,
): Promise<Environment> {
  await rm(directory, { recursive: true, force: true });
  const run = (command: readonly string[]) => runCommand(command, options);
  const python = join(directory, "bin", "python");
  const uv = await run(["uv", "--version"]).then(
    () => true,
    () => false,
  );
  await run(uv ? ["uv", "venv", "--seed", "--quiet", directory] : ["python3", "-m", "venv", directory]);
  const install = uv
    ? ["uv", "pip", "install", "--quiet", "--python", python]
    : [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "--timeout", "60", "install", "--no-input"];
  for (const step of recipe.steps) await run([...install, ...step]);
  await run([python, "-c", recipe.imports.map((module) => `import ${module}`).join("\n")]);
  const sitePackages = (await run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])).trim();
  const pythonLibraries = (
    await run([python, "-c", "import sysconfig; print(sysconfig.get_config_var('LIBDIR'))"])
  ).trim();
  const packages = (await run([python, "-m", "pip", "--disable-pip-version-check", "freeze"])).trim().split("\n");
  if (name === "oracle") await prepareOracle({ directory, python, sitePackages, run });
  const environment: Environment = { name, directory, python, sitePackages, pythonLibraries, packages };
  const staging = join(directory, `${stampName}.writing`);
  await writeFile(staging, `${JSON.stringify(environment, null, 1)}\n`);
  await rename(staging, join(directory, stampName));
  return environment;
}

async function readStamp(directory: string): Promise<Environment | null> {
  try {
    return JSON.parse(await readFile(join(directory, stampName), "utf8")) as Environment;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

const outputBytesMax = 64 * 1024;

/** Runs to the end and gives standard output; another exit code than 0 is an error with the last lines of both streams. */
async function runCommand(command: readonly string[], options: Required<MakingOptions>): Promise<string> {
  options.progress(`$ ${command.join(" ").slice(0, 200)}`);
  const child = spawn(command[0] ?? "", command.slice(1), {
    stdio: ["ignore", "pipe", "pipe"],
    signal: options.signal,
  });
  let output = "";
  let everything = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-outputBytesMax);
    everything = (everything + text).slice(-outputBytesMax);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    everything = (everything + text).slice(-outputBytesMax);
    options.progress(text.trimEnd());
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject).on("close", resolve);
  });
  if (code !== 0) throw new Error(`'${command.join(" ")}' ended with ${code}:\n${everything.slice(-4000)}`);
  return output;
}
