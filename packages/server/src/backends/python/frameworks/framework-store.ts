import { createHash, randomUUID } from "node:crypto";
import { readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectory } from "@galatea/base";
import type { Framework } from "./framework-rows.ts";

/** The location of a framework's environment, which may not exist yet. */
export interface FrameworkLocation {
  readonly directory: string;
  readonly python: string;
}

/**
 * Returns the location `<directory>/<name>-<hash of the lock file>`, so that each lock file has its own environment. The file `ready` in it
 * marks a complete environment. The file `installed` lists completed installations.
 */
export async function frameworkLocation(directory: string, framework: Framework): Promise<FrameworkLocation> {
  const lock = createHash("sha256")
    .update(await readFile(framework.lock))
    .digest("hex");
  const own = join(directory, `${framework.name}-${lock.slice(0, 12)}`);
  return { directory: own, python: join(own, "bin", "python") };
}

/** Returns the complete environment in the first directory that has one; null when there is none. */
export async function findFramework(
  directories: readonly string[],
  framework: Framework,
): Promise<FrameworkLocation | null> {
  for (const directory of directories) {
    const location = await frameworkLocation(directory, framework);
    const stamp = await stat(join(location.directory, "ready")).catch(() => null);
    if (stamp?.isFile() === true) return location;
  }
  return null;
}

/** Returns text for an error message: the directories in which the framework was not found, and the command that installs it. */
export function notInstalledText(directories: readonly string[], { name }: Pick<Framework, "name">): string {
  const looked = directories.map((directory) => `'${directory}'`).join(" or ");
  return `not set up in ${looked}. Do it once with: galatea model add ${name}`;
}

/**
 * Creates a link in `directory`, which all servers search, to an environment in one data directory. Replaces a link to an environment that
 * was deleted.
 */
export async function linkFramework(
  directory: string,
  framework: Framework,
  location: FrameworkLocation,
): Promise<void> {
  const link = (await frameworkLocation(directory, framework)).directory;
  await makeDirectory(directory);
  const partial = `${link}.link-${randomUUID()}`;
  await symlink(location.directory, partial);
  try {
    await rename(partial, link);
  } catch (error) {
    await rm(partial);
    // A directory at this path means that another call is creating the environment there, or was interrupted; the next call completes it.
    if ((error as NodeJS.ErrnoException).code !== "EISDIR") throw error;
  }
}

/** Returns the directories of all environments of a framework: for the current lock file and for earlier ones. */
export async function frameworkDirectories(directory: string, { name }: Framework): Promise<readonly string[]> {
  const entries = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const own = new RegExp(`^${name}-[0-9a-f]{12}(\\.gone-.*)?$`);
  return entries.filter((entry) => own.test(entry)).map((entry) => join(directory, entry));
}

/**
 * Deletes the environments of a framework except `kept`. Returns whether there were any. If this call is interrupted, the next one
 * completes the deletion.
 */
export async function deleteEnvironments(
  directory: string,
  framework: Framework,
  kept: string | null = null,
): Promise<boolean> {
  const found = (await frameworkDirectories(directory, framework)).filter((one) => one !== kept);
  for (const one of found) {
    // The directory is renamed first, so that a partially deleted environment is never used.
    const removed = one.includes(".gone-") ? one : `${one}.gone-${randomUUID()}`;
    if (removed !== one) await rename(one, removed);
    await rm(removed, { recursive: true, force: true });
  }
  return found.length > 0;
}
