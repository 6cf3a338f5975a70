import type { GpuUsage } from "../instances/index.ts";

/** One GPU as the driver reports it. A field is null if the driver reports no value. */
export interface MachineGpu {
  readonly memoryTotalBytes: number | null;
  readonly utilization: number | null;
  readonly processes: readonly { readonly pid: number; readonly memoryBytes: number }[];
}

/** Returns the GPU usage of the given processes; null on a machine without GPUs. */
export function gpuUsageOf(gpus: readonly MachineGpu[], pids: ReadonlySet<number>): GpuUsage | null {
  if (gpus.length === 0) return null;
  let busy = 0;
  let memory = 0;
  for (const { memoryTotalBytes, utilization, processes } of gpus) {
    const own = processes.filter(({ pid }) => pids.has(pid));
    if (own.length === 0) continue;
    busy += utilization ?? 0;
    const heldBytes = own.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
    memory += memoryTotalBytes === null || memoryTotalBytes === 0 ? 0 : heldBytes / memoryTotalBytes;
  }
  return { busy, memory };
}
