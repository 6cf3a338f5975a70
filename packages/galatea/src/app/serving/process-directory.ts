import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readProcessStart } from "@galatea/base/processes";

/**
 * Returns the path of a directory for this process in `parent`, and does not create it. Removes directories of
 * processes that have ended without removing them.
 */
export function processDirectory(parent: string): string {
  for (const name of entries(parent)) {
    const [pid, startTicks] = name.split("-").map(Number);
    if (pid === undefined || startTicks === undefined || readProcessStart(pid) !== startTicks)
      rmSync(join(parent, name), { recursive: true, force: true });
  }
  return join(parent, `${process.pid}-${readProcessStart(process.pid)}`);
}

function entries(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
