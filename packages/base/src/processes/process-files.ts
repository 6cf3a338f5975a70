import { readFile } from "node:fs/promises";

/** Reads a file of /proc/<pid>. Resolves with null if the process has ended or belongs to another user. */
export async function readProcessFile(pid: number, name: string): Promise<string | null> {
  try {
    return await readFile(`/proc/${pid}/${name}`, "latin1");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH" || code === "EACCES") return null;
    throw error;
  }
}

/**
 * Returns the pids of the children of a process's main thread, including zombies. In the server and its zygotes, only
 * the main thread forks.
 */
export async function childrenOf(pid: number): Promise<readonly number[]> {
  const children = await readProcessFile(pid, `task/${pid}/children`);
  return (children ?? "").split(" ").flatMap((text) => (text.trim() === "" ? [] : [Number(text)]));
}
