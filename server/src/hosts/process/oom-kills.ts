import { readFileSync } from "node:fs";

/** How many processes the kernel of this machine has ended for want of memory since it started; null where it does not say. */
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
