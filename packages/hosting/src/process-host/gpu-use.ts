import type { GpuUse } from "../index.ts";

/** What a GPU of the machine says of itself; null: it does not tell. */
export interface MachineGpu {
  readonly memoryTotalBytes: number | null;
  readonly utilization: number | null;
  readonly processes: readonly { readonly pid: number; readonly memoryBytes: number }[];
}

/** What these processes use of the machine's GPUs; null where there is none. */
export function gpuUseOf(gpus: readonly MachineGpu[], pids: ReadonlySet<number>): GpuUse | null {
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
