import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError } from "@galatea/base";
import { configTextBytesMax } from "../modelconfig/index.ts";
import { isMisnamedVersion, parseVersionDirectory } from "./version-policy.ts";

const entriesMax = 100_000;
const misnamedMax = 8;

/** Returns the names of the directories in a directory (links to directories included), sorted; [] when it does not exist. */
export async function listDirectories(directory: string): Promise<readonly string[]> {
  const names: string[] = [];
  for (const entry of await entriesOf(directory)) {
    if (entry.isDirectory()) names.push(entry.name);
    else if (entry.isSymbolicLink() && (await isDirectory(join(directory, entry.name)))) names.push(entry.name);
  }
  return names.sort();
}

/** Returns all names in a directory, sorted; [] when it does not exist. */
export async function listEntries(directory: string): Promise<readonly string[]> {
  return (await entriesOf(directory)).map((entry) => entry.name).sort();
}

async function entriesOf(directory: string) {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    if (entries.length > entriesMax) {
      throw new InferenceError("UNAVAILABLE", `directory ${directory} contains more than ${entriesMax} entries`);
    }
    return entries;
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

export async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch (error) {
    if (isAbsent(error)) return false;
    throw error;
  }
}

/** Reads a configuration file; null when it does not exist. */
export async function readConfigFile(path: string): Promise<string | null> {
  try {
    const entry = await stat(path);
    const refusal = (why: string) =>
      new InferenceError("INVALID_ARG", `failed to read text proto from ${path}: ${why}`);
    // Only regular files are read: reading a pipe or a device might never end.
    if (!entry.isFile()) throw refusal("it is not a file");
    if (entry.size > configTextBytesMax) throw refusal(`longer than ${configTextBytesMax} bytes`);
    return await readFile(path, "utf8");
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}

/**
 * Returns the version numbers of a model's directories, ascending, and the names of ignored directories that their author may have intended
 * as versions. These are the directories whose names resemble numbers or, in a model without versions, all directories.
 */
export async function listVersions(
  modelDirectory: string,
): Promise<{ readonly present: readonly number[]; readonly misnamed: readonly string[] }> {
  const names = await listDirectories(modelDirectory);
  const present = names.map(parseVersionDirectory).filter((version) => version !== null);
  const misnamed = present.length === 0 ? names : names.filter(isMisnamedVersion);
  return { present: present.sort((a, b) => a - b), misnamed: misnamed.slice(0, misnamedMax) };
}

/**
 * Returns whether a directory is a model and not a repository. A model contains a configuration or versions, and none of its subdirectories
 * contains either.
 */
export async function isModelDirectory(directory: string): Promise<boolean> {
  if (!(await looksLikeModel(directory))) return false;
  for (const name of await listDirectories(directory)) if (await looksLikeModel(join(directory, name))) return false;
  return true;
}

async function looksLikeModel(directory: string): Promise<boolean> {
  if ((await readConfigFile(join(directory, "config.pbtxt"))) !== null) return true;
  return (await listVersions(directory)).present.length > 0;
}

function isAbsent(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP";
}
