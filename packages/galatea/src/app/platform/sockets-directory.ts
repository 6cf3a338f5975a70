import { randomBytes } from "node:crypto";
import { lstat, mkdir, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Opens the directory for the sockets of instances, in the temporary directory because a socket's path must be short.
 * Its name is stored in `recordsDirectory`, which one platform uses at a time: instances that outlive a platform use it
 * for the next one.
 */
export async function openSocketsDirectory(recordsDirectory: string): Promise<string> {
  const notePath = join(recordsDirectory, "sockets-directory");
  const former = await readNote(notePath);
  if (former !== null && (await isOurs(former))) return former;
  // The name is written before the directory is made, so that a crash in between leaves nothing behind.
  const made = join(tmpdir(), `galatea-${randomBytes(3).toString("hex")}`);
  await writeFile(notePath, made);
  await mkdir(made, { mode: 0o700 });
  return made;
}

/**
 * Returns whether the directory belongs to this user: another user may have created one of that name after the
 * temporary directory was emptied.
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
  // An interrupted write leaves another name.
  return /\/galatea-[0-9A-Za-z]{6}$/.test(text) ? text : null;
}
