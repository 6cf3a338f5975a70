import { chmod, mkdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** The mode of a directory that every user may list and enter, but only its owner may change. */
export const sharedDirectoryMode = 0o755;
/** The mode of a file that every user may read. */
export const sharedFileMode = 0o644;

/**
 * Makes a directory and its missing parents with `sharedDirectoryMode`, regardless of the process's umask. Without this, the platform's
 * umask would hide a model's files from the users that tenants run as.
 */
export async function makeSharedDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  for (let created = resolve(path); created.length >= first.length; created = dirname(created)) {
    await chmod(created, sharedDirectoryMode);
  }
}
