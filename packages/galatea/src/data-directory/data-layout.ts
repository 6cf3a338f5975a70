import { lstat, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { formatPath } from "./data-format.ts";
import { credentialsPath, platformDirectories, type DataDirectories } from "./directories.ts";

type Kind = "a file" | "a directory" | "neither a file nor a directory";

const recordFile = /^(?:galatea|metrics)\.db|^lock$/;

/**
 * Rejects with one sentence if a path in the data directory is of an unexpected kind, such as a directory instead of
 * the database. Without this check, a start fails with an error of SQLite or of the file system that names neither the
 * path nor the remedy. A FIFO would block the start for ever.
 */
export async function checkDataLayout(directories: DataDirectories): Promise<void> {
  const { objects, records } = directories;
  for (const path of [...platformDirectories(directories), join(objects, "tmp"), join(objects, "buckets")])
    await checkKind(path, "a directory");
  for (const path of [credentialsPath(directories), formatPath(directories)]) await checkKind(path, "a file");
  const found = await readdir(records).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  for (const name of found.filter((each) => recordFile.test(each))) await checkKind(join(records, name), "a file");
}

async function checkKind(path: string, expected: Kind): Promise<void> {
  const kind = await kindOf(path);
  if (kind === null || kind === expected) return;
  throw new Error(
    `'${path}' is ${kind}, and Galatea needs ${expected} there: move it away, or choose another directory with --data`,
  );
}

/** Returns the kind of an entry; null if there is none. Follows links. */
async function kindOf(path: string): Promise<Kind | null> {
  try {
    const found = await stat(path);
    if (found.isFile()) return "a file";
    return found.isDirectory() ? "a directory" : "neither a file nor a directory";
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // The parent directories were checked before, so the entry is missing or a dangling link. SQLite cannot create a
    // file through a dangling link.
    if (code !== "ENOENT") throw error;
    return (await lstat(path).catch(() => null)) === null ? null : "neither a file nor a directory";
  }
}
