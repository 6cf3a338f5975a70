import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * A fresh directory for the sockets of instances, in the temporary directory because a socket's path must be short. A platform that
 * was killed left its own there: the name is kept in `recordsDirectory`, which one platform has at a time, and removed by the next.
 */
export async function makeSocketsDirectory(recordsDirectory: string): Promise<string> {
  const notePath = join(recordsDirectory, "sockets-directory");
  const former = await readNote(notePath);
  if (former !== null) await rm(former, { recursive: true, force: true });
  // The name before the directory: a platform that is killed between the two leaves nothing behind.
  const made = join(tmpdir(), `galatea-${randomBytes(3).toString("hex")}`);
  await writeFile(notePath, made);
  await mkdir(made, { mode: 0o700 });
  return made;
}

async function readNote(path: string): Promise<string | null> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  // A write that was cut short names something else.
  return /\/galatea-[0-9A-Za-z]{6}$/.test(text) ? text : null;
}
