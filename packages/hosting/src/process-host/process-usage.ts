import { setImmediate as nextTurn } from "node:timers/promises";
import {
  childrenOf,
  parseProcessStat,
  readProcessFile,
  readProcessFileSync,
  type ProcessStat,
} from "@galatea/base/processes";
import type { InstanceUsage } from "../instances/index.ts";

/** Nanoseconds of one tick. USER_HZ is 100 on every Linux architecture that Node supports. */
const tickNs = 1e9 / 100;

/**
 * Maximum number of processes that are read. The usage of an instance with more processes is under-reported, so that reading it does not stall
 * the platform.
 */
const processesMax = 4096;
/** Processes that are read before the event loop continues with other work: 0.5 ms. */
const processesPerTurn = 32;
/**
 * Maximum number of processes whose proportional memory is measured each time. The kernel walks all pages of the process
 * for it: 0.4 ms of CPU time for a Python worker, 40 times as much as the rest of its usage. The row `fleet-cost` of the
 * benchmarks has 3000 workers.
 */
const measuredMax = 64;

/** The resources that a process and its descendants use. */
export interface ProcessTreeUsage extends Pick<InstanceUsage, "cpuNs" | "memoryBytes"> {
  readonly pids: ReadonlySet<number>;
}

/** A measurement of a process's memory. */
interface MeasuredProcess extends Pick<ProcessStat, "startTicks" | "residentBytes"> {
  readonly proportionalBytes: number;
}

/** Measures a process and its descendants. */
export class ProcessTreeMeter {
  readonly #pid: number;
  readonly #readProportionalBytes: typeof readProportionalBytes;
  /** By pid, the least recently measured first. */
  readonly #measured = new Map<number, MeasuredProcess>();

  /** `read` replaces the kernel's measurement of one process in tests. */
  constructor(pid: number, read = readProportionalBytes) {
    this.#pid = pid;
    this.#readProportionalBytes = read;
  }

  /**
   * Returns the CPU time (including ended children) and proportional memory (PSS) of the process and its descendants; null
   * if the process has ended. With more than 64 processes, the memory is an estimate: each call measures 64 of them, new
   * ones first. The others have their last measurement and the growth of their resident memory since then. A process that
   * was never measured has the average ratio of proportional to resident memory.
   */
  async usage(): Promise<ProcessTreeUsage | null> {
    const stats = await readTree(this.#pid);
    if (!stats.has(this.#pid)) return null;
    await this.#measure(stats);
    let cpuNs = 0;
    for (const { cpuTicks } of stats.values()) cpuNs += cpuTicks * tickNs;
    return { cpuNs, memoryBytes: this.#memoryBytes(stats), pids: new Set(stats.keys()) };
  }

  async #measure(stats: ReadonlyMap<number, ProcessStat>): Promise<void> {
    for (const [pid, { startTicks }] of this.#measured)
      if (stats.get(pid)?.startTicks !== startTicks) this.#measured.delete(pid);
    const added = [...stats.keys()].filter((pid) => !this.#measured.has(pid));
    for (const pid of [...added, ...this.#measured.keys()].slice(0, measuredMax)) {
      const stat = stats.get(pid);
      if (stat === undefined) continue;
      const { startTicks, residentBytes } = stat;
      const proportionalBytes = await this.#readProportionalBytes(pid);
      this.#measured.delete(pid);
      this.#measured.set(pid, { startTicks, residentBytes, proportionalBytes });
    }
  }

  #memoryBytes(stats: ReadonlyMap<number, ProcessStat>): number {
    let [measuredBytes, measuredResidentBytes, otherResidentBytes] = [0, 0, 0];
    for (const [pid, { residentBytes }] of stats) {
      const measured = this.#measured.get(pid);
      if (measured === undefined) {
        otherResidentBytes += residentBytes;
        continue;
      }
      measuredBytes += Math.max(0, measured.proportionalBytes + residentBytes - measured.residentBytes);
      measuredResidentBytes += residentBytes;
    }
    return measuredBytes + otherResidentBytes * Math.min(1, measuredBytes / Math.max(1, measuredResidentBytes));
  }
}

/** Returns the processes of a tree by pid; without `pid` if it has ended. */
async function readTree(pid: number): Promise<ReadonlyMap<number, ProcessStat>> {
  const stats = new Map<number, ProcessStat>();
  const waiting = [pid];
  for (let seen = 1; seen <= processesMax; seen += 1) {
    const next = waiting.pop();
    if (next === undefined) break;
    const stat = readProcessFileSync(next, "stat");
    if (stat === null) continue;
    stats.set(next, parseProcessStat(stat));
    waiting.push(...childrenOf(next));
    if (seen % processesPerTurn === 0) await nextTurn();
  }
  return stats;
}

/** Returns a process's memory, with its share of pages that several processes map; 0 if it has ended or belongs to another user. */
async function readProportionalBytes(pid: number): Promise<number> {
  const rollup = await readProcessFile(pid, "smaps_rollup");
  return Number(/^Pss:\s+(\d+) kB/m.exec(rollup ?? "")?.[1] ?? 0) * 1024;
}

/** Returns the CPU time of one process in nanoseconds; null if it has ended. */
export function readProcessCpuNs(pid: number): number | null {
  const stat = readProcessFileSync(pid, "stat");
  return stat === null ? null : parseProcessStat(stat).cpuTicks * tickNs;
}
