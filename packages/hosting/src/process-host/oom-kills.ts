import { readFileSync } from "node:fs";

/**
 * Returns the number of processes that the kernel has killed for lack of memory since boot; null if the kernel does not count
 * them.
 */
export function readOomKillCount(): number | null {
  let text: string;
  try {
    text = readFileSync("/proc/vmstat", "latin1");
  } catch {
    return null;
  }
  const count = /^oom_kill (\d+)$/m.exec(text)?.[1];
  return count === undefined ? null : Number(count);
}
