import { randomBytes } from "node:crypto";
import { lstat, mkdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Opens the directory for the sockets of instances. It is in the temporary directory, because the path of a socket must
 * be short. Its name is stored in `recordsDirectory`, which only one platform uses at a time. Instances that outlive a
 * platform are therefore found again by the next one.
 */
export async function openSocketsDirectory(recordsDirectory: string): Promise<string> {
  const notePath = join(recordsDirectory, "sockets-directory");
  const former = await readNote(notePath);
  if (former !== null && (await isOurs(former))) return former;
  // The name is written before the directory is created, so that a crash in between leaves no unknown directory.
  const created = join(tmpdir(), `galatea-${randomBytes(3).toString("hex")}`);
  await writeFile(notePath, created);
  await mkdir(created, { mode: 0o700 });
  return created;
}

/**
 * Returns whether this user owns the directory. After the temporary directory was emptied, another user may have
 * created one with the same name.
 */
async function isOurs(path: string): Promise<boolean> {
  try {
    const found = await lstat(path);
    return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o777) === 0o700;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

async function readNote(path: string): Promise<string | null> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  // The file may contain an incomplete name if its write was interrupted.
  return /\/galatea-[0-9A-Za-z]{6}$/.test(text) ? text : null;
}
