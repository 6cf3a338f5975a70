import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createdDirectory } from "./created-directory.ts";
import { runCommand, type Installation, type InstallationOptions } from "./run-command.ts";

/** Sets of npm packages: each is a folder here, with a package.json and its lockfile. */
export const packageSetNames = ["javascript-sdk", "postgres"] as const;
type PackageSetName = (typeof packageSetNames)[number];

const files = ["package.json", "package-lock.json"] as const;

/**
 * Returns the folder with the `node_modules` of a set, from which programs load packages with `createRequire`. Missing
 * packages are installed below `cacheDirectory` from the lockfile (a few seconds, from npm's registry or its cache),
 * without install scripts. Throws with npm's output.
 */
export async function ensurePackages(
  cacheDirectory: string,
  name: PackageSetName,
  options: InstallationOptions = {},
): Promise<string> {
  const folder = fileURLToPath(new URL(`${name}/`, import.meta.url));
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file))));
  const key = createHash("sha256").update(Buffer.concat(texts)).digest("hex").slice(0, 12);
  const directory = join(cacheDirectory, "environments", `${name}-${key}`);
  const making: Installation = { signal: new AbortController().signal, progress: () => {}, ...options };
  await createdDirectory(directory, making, async () => {
    await mkdir(directory);
    for (const [index, file] of files.entries()) await writeFile(join(directory, file), texts[index] ?? "");
    await install(directory, making);
    return { name };
  });
  return directory;
}

/**
 * Runs npm with `--prefix` and `--workspaces=false`, so that packages above the cache directory and a surrounding npm
 * script have no influence.
 */
async function install(directory: string, making: Installation): Promise<void> {
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--workspaces=false"];
  try {
    await runCommand(["npm", "ci", ...flags, "--prefix", directory], { ...making, cwd: directory });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT")
      throw new Error("npm, which comes with Node, is not on PATH: it installs the packages of this suite", {
        cause: error,
      });
    making.signal.throwIfAborted();
    throw new Error(
      `the packages of this suite were not installed to ${directory}; npm's registry (\`npm config get registry\`) has to be reachable for it, once: ${(error as Error).message}`,
      { cause: error },
    );
  }
}
