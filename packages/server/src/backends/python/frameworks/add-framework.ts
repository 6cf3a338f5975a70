import { mkdir, readFile, rename, rm, stat, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { asDiskError, makeDirectory, type Clock } from "@galatea/base";
import {
  canRun,
  findInterpreter,
  createVenv,
  mayUseUv,
  runInstaller,
  type InstallerOptions,
} from "../installer-process.ts";
import { acquireInstallLock } from "../prepare-environment.ts";
import { constraintLine, lockedLine, readPins, type PinGroup } from "./framework-lock.ts";
import type { Framework } from "./framework-rows.ts";
import {
  deleteEnvironments,
  frameworkDirectories,
  findFramework,
  frameworkLocation,
  type FrameworkLocation,
} from "./framework-store.ts";

export interface AddOptions {
  readonly framework: Framework;
  /** Directory that contains the environments of all frameworks. */
  readonly directory: string;
  /** A directory with wheels that is used instead of the package index; null for the index. */
  readonly wheels: string | null;
  /** True to install the locked versions from any build (for example without CUDA), instead of exactly the files in the lock file. */
  readonly anyBuild: boolean;
  /** Interpreters to try, in order of preference. */
  readonly pythons: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly onProgress: (line: string) => void;
  readonly signal: AbortSignal;
}

/** The state while one environment is created. */
interface Making {
  readonly options: AddOptions;
  readonly location: FrameworkLocation;
  readonly installer: InstallerOptions;
  /** The first arguments of every install command. */
  readonly install: readonly [command: string, ...args: string[]];
}

const mebibyte = 2 ** 20;

/**
 * Creates the environment of a framework, unless it exists. After an interruption, the next call continues and skips completed
 * installations. Throws an Error with the reason and a remedy.
 */
export async function addFramework(options: AddOptions): Promise<FrameworkLocation> {
  const { directory, framework } = options;
  const created = await findFramework([directory], framework);
  if (created !== null) return created;
  await makeDirectory(directory);
  using _lock = await acquireInstallLock(directory, options);
  const location = await frameworkLocation(directory, framework);
  if ((await findFramework([directory], framework)) !== null) return location;
  try {
    await install(location, options);
    // Environments for older versions of this product are not used any more.
    await deleteEnvironments(directory, framework, location.directory);
  } catch (error) {
    options.signal.throwIfAborted();
    throw asDiskError(error, `'${location.directory}'`);
  }
  return location;
}

/**
 * Deletes the environments of a framework. Returns false when there were none. Running models continue as long as they import no further
 * modules.
 */
export async function removeFramework(
  options: Pick<AddOptions, "framework" | "directory" | "clock" | "onProgress" | "signal">,
): Promise<boolean> {
  const { directory, framework } = options;
  // The directory may belong to another user when it contains no environment.
  if ((await frameworkDirectories(directory, framework)).length === 0) return false;
  using _lock = await acquireInstallLock(directory, options);
  return await deleteEnvironments(directory, framework);
}

async function install(location: FrameworkLocation, options: AddOptions): Promise<void> {
  const { framework, signal, env, clock, onProgress } = options;
  const installer = { directory: location.directory, packages: framework.packages, env, clock, onProgress, signal };
  await refuseSmallDisk(location, options);
  const making = {
    options,
    location,
    installer,
    install: await openEnvironment(location, installer, options),
  };
  await (options.anyBuild ? installAnyBuild(making) : installLocked(making));
  await check(making);
  const partial = join(location.directory, "ready.part");
  await writeFile(partial, `${framework.packages.join("\n")}\n`);
  await rename(partial, join(location.directory, "ready"));
}

/** Checks the free disk space before anything is downloaded. Packages that an interrupted call has installed already use their space. */
async function refuseSmallDisk({ directory }: FrameworkLocation, { framework, directory: parent }: AddOptions) {
  if ((await stat(directory).catch(() => null)) !== null) return;
  const { bavail, bsize } = await statfs(parent);
  const free = bavail * bsize;
  if (free < framework.diskBytes)
    throw new Error(
      `${framework.name} takes up to ${inMebibytes(framework.diskBytes)}, and '${parent}' has ${inMebibytes(free)} left; ` +
        "--data names another directory",
    );
}

/** Finds or creates the environment, without packages. Returns the first arguments of every install command. */
async function openEnvironment(
  { directory, python }: FrameworkLocation,
  installer: InstallerOptions,
  { framework, pythons, wheels }: AddOptions,
): Promise<Making["install"]> {
  const uv = wheels === null && mayUseUv(installer.env) && (await canRun("uv", ["--version"], installer));
  const install: Making["install"] = uv
    ? ["uv", "--quiet", "pip", "install", "--compile-bytecode", "--python", python]
    : [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir"];
  // An environment that uv has created may not contain pip.
  const isUsable = await canRun(python, uv ? ["-c", ""] : ["-m", "pip", "--version"], installer);
  if (isUsable) return install;
  await rm(directory, { recursive: true, force: true });
  const base = await findInterpreter(
    pythons,
    { oldest: framework.python, newest: framework.newestPython ?? null },
    installer,
  );
  installer.onProgress(`making an environment with ${base}`);
  if (uv) await runInstaller("uv", ["--quiet", "venv", "--python", base, directory], installer);
  else await createVenv(base, installer);
  return install;
}

/** Installs the files of the lock file in groups. Each installed group is recorded, and skipped after an interruption. */
async function installLocked({ options, location, installer, install }: Making): Promise<void> {
  const groups = await readPins(options.framework.lock, process.arch);
  const total = groups.reduce((sum, { bytes }) => sum + bytes, 0);
  const [command, ...args] = install;
  const note = join(location.directory, "installed");
  const done = new Set((await readFile(note, "utf8").catch(() => "")).split("\n"));
  let before = 0;
  for (const [index, group] of groups.entries()) {
    const names = group.pins.map(({ name, version }) => `${name} ${version}`).join(", ");
    if (!done.has(names)) {
      const share = `${inMebibytes(before)} of ${inMebibytes(total)} are already downloaded`;
      installer.onProgress(`${index + 1} of ${groups.length} (${share}): ${names}`);
      const file = await requirementsFile(location, group, lockedLine);
      const own = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", file];
      // An interrupted call may have installed packages partially; these are installed again.
      await runInstaller(command, [...args, ...fromWheels(options), ...reinstalls(command), ...own], installer);
      await writeFile(note, `${names}\n`, { flag: "a" });
    }
    before += group.bytes;
  }
}

/**
 * Returns the flags that install existing packages again. uv needs none; without the flag, pip would keep a partially installed package.
 */
function reinstalls(command: string): readonly string[] {
  return command === "uv" ? ["--reinstall"] : ["--ignore-installed"];
}

async function installAnyBuild({ options, location, installer, install }: Making): Promise<void> {
  const groups = await readPins(options.framework.lock, process.arch);
  const [command, ...args] = install;
  const pins = groups.flatMap((group) => group.pins);
  const file = await requirementsFile(location, { pins, bytes: 0 }, constraintLine);
  installer.onProgress(`installing ${options.framework.packages.join(", ")} from any publisher`);
  const own = ["--only-binary", ":all:", "--constraint", file, ...options.framework.packages];
  await runInstaller(command, [...args, ...fromWheels(options), ...own], installer);
}

function fromWheels({ wheels }: AddOptions): readonly string[] {
  return wheels === null ? [] : ["--no-index", "--find-links", wheels];
}

async function requirementsFile(
  { directory }: FrameworkLocation,
  { pins }: PinGroup,
  line: (pin: PinGroup["pins"][number]) => string,
): Promise<string> {
  const file = join(directory, "requirements.txt");
  await mkdir(directory, { recursive: true });
  await writeFile(file, pins.map((pin) => `${line(pin)}\n`).join(""));
  return file;
}

/** Imports the packages, so that a broken installation fails here and not at the first model. */
async function check({ options: { framework }, location, installer }: Making): Promise<void> {
  const ofPackages = (framework.imports ?? []).filter((name) => !name.startsWith("galatea_"));
  installer.onProgress(`importing ${ofPackages.join(", ") || framework.name}`);
  await runInstaller(location.python, ["-c", ofPackages.map((name) => `import ${name}`).join("\n")], installer);
}

function inMebibytes(bytes: number): string {
  return `${Math.round(bytes / mebibyte)} MiB`;
}
