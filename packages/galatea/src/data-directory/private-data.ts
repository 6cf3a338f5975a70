import type { Stats } from "node:fs";
import { chmod, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { DiskError, type Logger } from "@galatea/base";
import { platformDirectories, rootEntries, type DataDirectories } from "./directories.ts";

/** The platform's umask: other users of the machine get no access to the files that it writes. */
export const platformUmask = 0o077;

const privateDirectory = 0o700;
const privateFile = 0o600;
const othersBits = 0o077;
const stickyBit = 0o1000;

/**
 * Closes the data directory to other users of the machine, whatever its mode was before: the directories that are Galatea's, and the files directly in them that hold records and keys. Files further down cannot be
 * reached through a closed directory. A root that also holds other programs' entries keeps its mode, because other users may need these; the
 * directories in it are closed.
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

/** Removes other users' access to a file or directory. Skips links, because their targets are not below the data directory. */
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
      `other users of this machine can read '${path}': its mode cannot be changed (${code ?? String(error)})`,
    );
  }
}

/** Returns null where the path no longer exists: SQLite removes its temporary files. */
async function statsOf(path: string): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
