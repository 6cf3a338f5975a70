import { readFileSync } from "node:fs";
import type { Clock } from "../core/index.ts";
import type { MetricRegistry } from "./registry.ts";

export interface CpuTimes {
  readonly busy: number;
  readonly total: number;
}

/** Parses the first line of /proc/stat, in clock ticks: user nice system idle iowait irq softirq steal. */
export function parseCpuTimes(stat: string): CpuTimes {
  const ticks = stat.slice(0, stat.indexOf("\n")).trim().split(/\s+/).slice(1, 9).map(Number);
  const total = ticks.reduce((sum, value) => sum + value, 0);
  return { busy: total - (ticks[3] ?? 0) - (ticks[4] ?? 0), total };
}

export interface HostMemory {
  readonly total: number;
  readonly used: number;
}

export function parseMemInfo(meminfo: string): HostMemory {
  const bytesOf = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(meminfo)?.[1] ?? 0) * 1024;
  const total = bytesOf("MemTotal");
  return { total, used: total - bytesOf("MemAvailable") };
}

export interface HostMetricsOptions {
  readonly clock: Clock;
  /**
   * Minimum time between two readings of the CPU ticks, in milliseconds. A scrape before that reports the previous
   * utilization.
   */
  readonly intervalMs: number;
  /** Reads the text of a file; by default from the real `/proc`. */
  readonly read?: (path: string) => string;
}

/** Registers the nv_cpu_* gauges, which are read at each scrape. Utilization covers the time since the previous reading. */
export function createHostMetrics(registry: MetricRegistry, options: HostMetricsOptions): void {
  const read = options.read ?? ((path: string) => readFileSync(path, "latin1"));
  let times = parseCpuTimes(read("/proc/stat"));
  let readAtNs = options.clock.monotonicNs();
  let utilization = 0;
  registry.gauge("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]").readFrom({}, () => {
    const nowNs = options.clock.monotonicNs();
    if (nowNs - readAtNs < options.intervalMs * 1e6) return utilization;
    const now = parseCpuTimes(read("/proc/stat"));
    if (now.total > times.total) utilization = (now.busy - times.busy) / (now.total - times.total);
    times = now;
    readAtNs = nowNs;
    return utilization;
  });
  registry
    .gauge("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes")
    .readFrom({}, () => parseMemInfo(read("/proc/meminfo")).total);
  registry
    .gauge("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes")
    .readFrom({}, () => parseMemInfo(read("/proc/meminfo")).used);
}
