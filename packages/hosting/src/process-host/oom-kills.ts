import { readFileSync } from "node:fs";

/** Returns how many processes the kernel has killed for lack of memory since it started; null where it does not count them. */
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
