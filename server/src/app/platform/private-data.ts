import type { Stats } from "node:fs";
import { chmod, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { DiskError, type Logger } from "../../base/index.ts";
import { platformDirectories, rootEntries, type DataDirectories } from "../directories.ts";

/** The platform's umask: what it writes is its user's alone. */
export const platformUmask = 0o077;

const privateDirectory = 0o700;
const privateFile = 0o600;
const othersBits = 0o077;
const stickyBit = 0o1000;

/**
 * Closes the data directory to other users of the machine. Earlier releases made it readable for everybody, and their directories are
 * repaired: the directories that are Galatea's, and the files directly in them that hold records and keys. What lies further down cannot be
 * reached through a closed directory. A root that holds what is not Galatea's stays as it is, because others may need that; the
 * directories in it are closed.
 */
export async function closeToOthers(directories: DataDirectories, log: Logger): Promise<void> {
  const { root, records, clients } = directories;
  const foreign = (await readdir(root)).find((name) => !rootEntries.test(name));
  const rootStats = await lstat(root);
  const isShared = foreign !== undefined || (rootStats.mode & stickyBit) !== 0;
  if (!isShared) await close(root, log);
  else if ((rootStats.mode & othersBits) !== 0) {
    log.warning(
      `other users of this machine may enter the data directory '${root}': it is left as it is, because it holds ` +
        `${foreign === undefined ? "what all users share" : `'${foreign}', which is not Galatea's`}; ` +
        "its own directories in it are closed to them",
    );
  }
  for (const directory of platformDirectories(directories)) if (directory !== root) await close(directory, log);
  for (const directory of [root, records, clients]) {
    for (const entry of await readdir(directory, { withFileTypes: true }))
      if (entry.isFile() && (directory !== root || rootEntries.test(entry.name)))
        await close(join(directory, entry.name), log);
  }
}

/** Takes a file or directory from other users; a link is left, because what it leads to is not below the data directory. */
async function close(path: string, log: Logger): Promise<void> {
  const found = await statsOf(path);
  if (found === null || found.isSymbolicLink() || (found.mode & othersBits) === 0) return;
  try {
    await chmod(path, found.isDirectory() ? privateDirectory : privateFile);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return;
    if (code === "EROFS") throw new DiskError("read-only", `'${path}'`, error);
    // A volume that belongs to another user, as Kubernetes mounts them, or a file system without modes: its operator decides.
    log.warning(
      `other users of this machine may read '${path}': its mode cannot be changed (${code ?? String(error)})`,
    );
  }
}

/** Null where the path is gone: SQLite removes files of its own. */
async function statsOf(path: string): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
