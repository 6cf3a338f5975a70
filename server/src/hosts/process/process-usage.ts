import { readFile } from "node:fs/promises";
import type { InstanceUsage } from "../../hosting/index.ts";

/** USER_HZ: 100 on every Linux architecture that Node runs on. */
const tickNs = 1e9 / 100;

/** Bounds the walk; an instance with more processes is under-reported, not a reason to stall. */
const processesMax = 4096;

/** Processor time and proportional memory of a process and all below it; null when it is gone. */
export async function processTreeUsage(pid: number): Promise<InstanceUsage | null> {
  let cpuNs = 0;
  let memoryBytes = 0;
  let isRootSeen = false;
  const waiting = [pid];
  for (let seen = 0; seen < processesMax; seen += 1) {
    const next = waiting.pop();
    if (next === undefined) break;
    const usage = await processUsage(next);
    if (usage === null) continue;
    if (next === pid) isRootSeen = true;
    cpuNs += usage.cpuNs;
    memoryBytes += usage.memoryBytes;
    waiting.push(...(await childrenOf(next)));
  }
  return isRootSeen ? { cpuNs, memoryBytes } : null;
}

async function processUsage(pid: number): Promise<InstanceUsage | null> {
  const stat = await readProc(`/proc/${pid}/stat`);
  const memory = await readProc(`/proc/${pid}/smaps_rollup`);
  if (stat === null) return null;
  // The command in parentheses may hold anything: fields count from the last one; utime and stime are 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const pssKib = Number(/^Pss:\s+(\d+) kB/m.exec(memory ?? "")?.[1] ?? 0);
  return { cpuNs: (Number(fields[11]) + Number(fields[12])) * tickNs, memoryBytes: pssKib * 1024 };
}

/** Children of the main thread: the only one that forks in our server and in its zygotes. */
async function childrenOf(pid: number): Promise<number[]> {
  const children = await readProc(`/proc/${pid}/task/${pid}/children`);
  return (children ?? "").split(" ").flatMap((text) => (text.trim() === "" ? [] : [Number(text)]));
}

async function readProc(path: string): Promise<string | null> {
  try {
    return await readFile(path, "latin1");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH" || code === "EACCES") return null;
    throw error;
  }
}
