import { createHash } from "node:crypto";
import { chmod, rm, writeFile } from "node:fs/promises";
import { asDiskError, InferenceError, makeDirectory, type Clock } from "@galatea/base";
import { canRun, mayUseUv, runInstaller, type InstallerOptions } from "../installer-process.ts";
import type { DirectoryLease, DirectoryCache } from "../directory-cache.ts";
import { constraintLine, readPins } from "./framework-lock.ts";
import type { Framework } from "./framework-rows.ts";
import { findFramework, notInstalledText } from "./framework-store.ts";

export interface AddedPackagesOptions {
  readonly framework: Framework;
  /** Directories that contain the environments of frameworks. */
  readonly environments: readonly string[];
  /** Cache of package directories, one for each list of packages. Models may read it. */
  readonly kept: DirectoryCache;
  /** Requirements in pip's format. They have been checked to contain only names and versions. */
  readonly packages: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Installs packages in addition to a framework's environment, in a separate directory for `sys.path`. The environment does not change, so
 * one interpreter can serve models with and without the packages. Only wheels are installed, and their code does not run during the
 * installation or when an interpreter starts. Packages of the framework keep their version. Each list of packages is installed once. Throws
 * INVALID_ARG with the installer's reason.
 */
export async function addPackages(options: AddedPackagesOptions): Promise<DirectoryLease> {
  const { framework, environments, kept, packages, signal } = options;
  const location = await findFramework(environments, framework);
  if (location === null)
    throw new InferenceError(
      "UNAVAILABLE",
      `${framework.name}, which the packages are to be added to, is ${notInstalledText(environments, framework)}`,
    );
  const env = installerEnvironment(options.env);
  // The container's variables are part of the key, because they may name another package index.
  const identity = createHash("sha256")
    .update(JSON.stringify([location.directory, packages, Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1))]))
    .digest("hex");
  const name = identity.slice(0, 32);
  try {
    // The parent directory cannot be listed, so a model can open a directory only if it knows the list of packages.
    await makeDirectory(kept.directory);
    await chmod(kept.directory, 0o711);
    return await kept.hold(
      name,
      async (files) => {
        await install(files, location.python, { ...options, env });
        return null;
      },
      signal,
    );
  } catch (error) {
    signal.throwIfAborted();
    const { message } = asDiskError(error, `'${kept.filesOf(name)}'`) as Error;
    throw new InferenceError("INVALID_ARG", `the packages ${packages.join(", ")} cannot be installed: ${message}`, {
      cause: error,
    });
  }
}

/** Removes variables that would make Python import the container owner's modules. */
function installerEnvironment(env: AddedPackagesOptions["env"]): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("PYTHON")));
}

async function install(directory: string, python: string, options: AddedPackagesOptions): Promise<void> {
  const { framework, packages, env, clock, onProgress, signal } = options;
  const installer: InstallerOptions = { directory, packages, env, clock, onProgress, signal };
  const constraints = `${directory}.constraints`;
  const pins = (await readPins(framework.lock, process.arch)).flatMap((group) => group.pins);
  await writeFile(constraints, pins.map((pin) => `${constraintLine(pin)}\n`).join(""));
  try {
    const uv = mayUseUv(env) && (await canRun("uv", ["--version"], installer));
    const [command, ...args] = uv
      ? (["uv", "--quiet", "pip", "install", "--no-cache", "--python", python] as const)
      : ([
          python,
          "-I",
          "-m",
          "pip",
          "install",
          "--quiet",
          "--disable-pip-version-check",
          "--no-input",
          "--no-cache-dir",
        ] as const);
    const own = ["--only-binary", ":all:", "--target", directory, "--constraint", constraints];
    onProgress(`installing ${packages.join(", ")} beside ${framework.name}`);
    await runInstaller(command, [...args, ...own, ...packages], installer);
  } finally {
    await rm(constraints, { force: true });
  }
}
