import type { Stats } from "node:fs";
import { chmod, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { DiskError, type Logger } from "@galatea/base";
import { platformDirectories, rootEntries, type DataDirectories } from "./directories.ts";

/** The umask of a platform, with which other users of the machine cannot access the files that it writes. */
export const platformUmask = 0o077;

const privateDirectory = 0o700;
const privateFile = 0o600;
const othersBits = 0o077;
const stickyBit = 0o1000;

/**
 * Removes other users' access to the data directory, whatever its mode was before. This applies to Galatea's
 * directories, and to the files directly in them that contain records and keys. Files further down cannot be reached
 * without access to these directories. A root that also contains other programs' entries keeps its mode, because other
 * users may need those entries. Only Galatea's directories in it become private.
 */
export async function restrictToOwner(directories: DataDirectories, log: Logger): Promise<void> {
  const { root, records, clients } = directories;
  const foreign = (await readdir(root)).find((name) => !rootEntries.test(name));
  const rootStats = await lstat(root);
  const isShared = foreign !== undefined || (rootStats.mode & stickyBit) !== 0;
  if (!isShared) await close(root, log);
  else if ((rootStats.mode & othersBits) !== 0) {
    log.warning(
      `other users of this machine can enter the data directory '${root}': its mode is kept, because it ` +
        `${foreign === undefined ? "is shared by all users" : `holds '${foreign}', which is not Galatea's`}; ` +
        "Galatea's directories in it are closed to them",
    );
  }
  for (const directory of platformDirectories(directories)) if (directory !== root) await close(directory, log);
  for (const directory of [root, records, clients]) {
    for (const entry of await readdir(directory, { withFileTypes: true }))
      if (entry.isFile() && (directory !== root || rootEntries.test(entry.name)))
        await close(join(directory, entry.name), log);
  }
}

/**
 * Removes other users' access to a file or directory. Skips links, because their targets are outside of the data
 * directory.
 */
async function close(path: string, log: Logger): Promise<void> {
  const found = await statsOf(path);
  if (found === null || found.isSymbolicLink() || (found.mode & othersBits) === 0) return;
  try {
    await chmod(path, found.isDirectory() ? privateDirectory : privateFile);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return;
    if (code === "EROFS") throw new DiskError("read-only", `'${path}'`, error);
    // The volume belongs to another user, as in Kubernetes, or the file system has no modes. The operator must protect
    // such a volume.
    log.warning(
      `other users of this machine can read '${path}': its mode cannot be changed (${code ?? String(error)})`,
    );
  }
}

/** Returns null if the path no longer exists, as SQLite removes its temporary files. */
async function statsOf(path: string): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
