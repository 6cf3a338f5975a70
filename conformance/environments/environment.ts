import { createHash } from "node:crypto";
import { join } from "node:path";
import { createdDirectory } from "./created-directory.ts";
import { prepareOracle } from "./oracle-files.ts";
import { recipes, rivalRecipes, type EnvironmentName, type Recipe, type RivalName } from "./recipes.ts";
import { runCommand, type Installation, type InstallationOptions } from "./run-command.ts";

export interface Environment {
  readonly name: EnvironmentName | RivalName;
  readonly directory: string;
  readonly python: string;
  readonly sitePackages: string;
  /** The directory of this Python's shared library. */
  readonly pythonLibraries: string;
  /** `name==version` of every installed package. */
  readonly packages: readonly string[];
}

/** Python compiles a module when it is first imported. Compilation of all modules takes most of the processor time of an installation. */
const pipOptions = ["--no-input", "--no-compile"];

/**
 * Returns an environment below `cacheDirectory`, and creates it if it does not exist (half a minute with a warm package
 * cache). Throws with the failed command and the end of its output.
 */
export async function ensureEnvironment(
  cacheDirectory: string,
  name: EnvironmentName | RivalName,
  options: InstallationOptions = {},
): Promise<Environment> {
  const recipe: Recipe = { ...recipes, ...rivalRecipes }[name];
  const key = createHash("sha256").update(JSON.stringify(recipe)).digest("hex").slice(0, 12);
  const directory = join(cacheDirectory, "environments", `${name}-${key}`);
  const making: Installation = { signal: new AbortController().signal, progress: () => {}, ...options };
  return createdDirectory(directory, making, () => make(name, recipe, directory, making));
}

async function make(
  name: EnvironmentName | RivalName,
  recipe: Recipe,
  directory: string,
  making: Installation,
): Promise<Environment> {
  const run = (command: readonly string[]) => runCommand(command, making);
  const python = join(directory, "bin", "python");
  const uv = await run(["uv", "--version"]).then(
    () => true,
    () => false,
  );
  await run(uv ? ["uv", "venv", "--seed", "--quiet", directory] : ["python3", "-m", "venv", directory]);
  const install = uv
    ? ["uv", "pip", "install", "--quiet", "--python", python]
    : [python, "-m", "pip", "--disable-pip-version-check", "--quiet", "--timeout", "60", "install", ...pipOptions];
  for (const step of recipe.steps) await run([...install, ...step]);
  await run([python, "-c", recipe.imports.map((module) => `import ${module}`).join("\n")]);
  const sitePackages = (await run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])).trim();
  const pythonLibraries = (
    await run([python, "-c", "import sysconfig; print(sysconfig.get_config_var('LIBDIR'))"])
  ).trim();
  const packages = (await run([python, "-m", "pip", "--disable-pip-version-check", "freeze"])).trim().split("\n");
  if (name === "oracle") await prepareOracle({ directory, python, sitePackages, run });
  return { name, directory, python, sitePackages, pythonLibraries, packages };
}
