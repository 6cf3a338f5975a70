import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readProcessStart } from "../processes/index.ts";

/**
 * Where this process keeps the files of `file:` load parameters. A server that was killed could not remove its own: that of each
 * process that is no more is removed here.
 */
export function overrideDirectory(cacheDirectory: string): string {
  const parent = join(cacheDirectory, "overrides");
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
