import type { InstanceUsage } from "../instances/index.ts";
import { childrenOf, parseProcessStat, readProcessFile } from "@galatea/base/processes";

/** Nanoseconds of one tick. USER_HZ is 100 on every Linux architecture that Node supports. */
const tickNs = 1e9 / 100;

/**
 * Maximum number of processes that are read. The usage of an instance with more processes is under-reported, so that reading it does not stall
 * the platform.
 */
const processesMax = 4096;

/** The resources that a process and its descendants use. */
export interface ProcessTreeUsage extends Pick<InstanceUsage, "cpuNs" | "memoryBytes"> {
  readonly pids: ReadonlySet<number>;
}

/**
 * Returns the CPU time (including ended children) and proportional memory (PSS) of a process and its descendants; null if the process has ended.
 */
export async function readProcessTreeUsage(pid: number): Promise<ProcessTreeUsage | null> {
  let cpuNs = 0;
  let memoryBytes = 0;
  let isRootSeen = false;
  const waiting = [pid];
  const pids = new Set<number>();
  for (let seen = 0; seen < processesMax; seen += 1) {
    const next = waiting.pop();
    if (next === undefined) break;
    const stat = await readProcessFile(next, "stat");
    if (stat === null) continue;
    if (next === pid) isRootSeen = true;
    pids.add(next);
    cpuNs += parseProcessStat(stat).cpuTicks * tickNs;
    const memory = await readProcessFile(next, "smaps_rollup");
    const pssKib = Number(/^Pss:\s+(\d+) kB/m.exec(memory ?? "")?.[1] ?? 0);
    memoryBytes += pssKib * 1024;
    waiting.push(...(await childrenOf(next)));
  }
  return isRootSeen ? { cpuNs, memoryBytes, pids } : null;
}

/** Returns the CPU time of one process in nanoseconds; null if it has ended. */
export async function readProcessCpuNs(pid: number): Promise<number | null> {
  const stat = await readProcessFile(pid, "stat");
  return stat === null ? null : parseProcessStat(stat).cpuTicks * tickNs;
}
