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
 * Returns `<directory>/<name>-<hash of its lock>`: each lock has its own environment. In it the file `ready` marks a complete one, and
 * `installed` lists completed installations.
 */
export async function frameworkLocation(directory: string, framework: Framework): Promise<FrameworkLocation> {
  const lock = createHash("sha256")
    .update(await readFile(framework.lock))
    .digest("hex");
  const own = join(directory, `${framework.name}-${lock.slice(0, 12)}`);
  return { directory: own, python: join(own, "bin", "python") };
}

/** Returns the environment in the first of the directories that has it complete; null when none has. */
export async function madeFramework(
  directories: readonly string[],
  framework: Framework,
): Promise<FrameworkLocation | null> {
  for (const directory of directories) {
    const place = await frameworkLocation(directory, framework);
    const stamp = await stat(join(place.directory, "ready")).catch(() => null);
    if (stamp?.isFile() === true) return place;
  }
  return null;
}

/** Returns the part of an error that names the directories without the framework, and the command that installs it. */
export function notSetUpText(directories: readonly string[], { name }: Pick<Framework, "name">): string {
  const looked = directories.map((directory) => `'${directory}'`).join(" or ");
  return `not set up in ${looked}. Do it once with: galatea model add ${name}`;
}

/**
 * Links to an environment below one data directory from `directory`, which servers over every data directory search. Replaces a link to an
 * environment that was deleted.
 */
export async function linkFramework(directory: string, framework: Framework, place: FrameworkLocation): Promise<void> {
  const link = (await frameworkLocation(directory, framework)).directory;
  await makeDirectory(directory);
  const partial = `${link}.link-${randomUUID()}`;
  await symlink(place.directory, partial);
  try {
    await rename(partial, link);
  } catch (error) {
    await rm(partial);
    // Another call creates the environment there, or was interrupted and is continued by the next one.
    if ((error as NodeJS.ErrnoException).code !== "EISDIR") throw error;
  }
}

/** Returns all directories of a framework: for its current lock, and for earlier ones. */
export async function directoriesOf(directory: string, { name }: Framework): Promise<readonly string[]> {
  const entries = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  const own = new RegExp(`^${name}-[0-9a-f]{12}(\\.gone-.*)?$`);
  return entries.filter((entry) => own.test(entry)).map((entry) => join(directory, entry));
}

/**
 * Deletes a framework's environments except for `kept`; returns true when there were any. The next call completes an interrupted
 * deletion.
 */
export async function deleteEnvironments(
  directory: string,
  framework: Framework,
  kept: string | null = null,
): Promise<boolean> {
  const found = (await directoriesOf(directory, framework)).filter((one) => one !== kept);
  for (const one of found) {
    // Renamed first, so that an incomplete deletion is never used as an environment.
    const gone = one.includes(".gone-") ? one : `${one}.gone-${randomUUID()}`;
    if (gone !== one) await rename(one, gone);
    await rm(gone, { recursive: true, force: true });
  }
  return found.length > 0;
}
