import { totalmem } from "node:os";
import { ByteBudget } from "@galatea/base";

/**
 * Default fraction of the available memory for requests in flight. Models, code and the system use the remaining
 * memory.
 */
const share = 1 / 4;

/**
 * Returns the process's memory budget for requests in flight: the given size, or a fraction of the available memory.
 */
export function requestMemory(askedBytes: number | null): ByteBudget {
  return new ByteBudget(
    askedBytes ?? memoryShare({ machineBytes: totalmem(), cgroupBytes: process.constrainedMemory() }),
  );
}

/**
 * The machine's memory, and the memory limit of this process's cgroup. Without a limit, `cgroupBytes` is 0 or exceeds
 * the machine's memory.
 */
interface MachineMemory {
  readonly machineBytes: number;
  readonly cgroupBytes: number;
}

export function memoryShare(memory: MachineMemory): number {
  return Math.floor(limitedMemoryBytes(memory) * share);
}

/** Returns the memory that this process may use: the machine's, or less if the cgroup has a limit. */
export function limitedMemoryBytes({ machineBytes, cgroupBytes }: MachineMemory): number {
  return cgroupBytes > 0 ? Math.min(machineBytes, cgroupBytes) : machineBytes;
}

/** Minimum budget of a container, with which it can serve a request of SageMaker's maximum size and its response. */
const containerBytesMin = 64 * 2 ** 20;

/**
 * Returns the memory budget of an instance's container: a fraction of its models' memory, at most the platform's
 * budget.
 */
export function containerRequestBytes(modelMemoryBytes: number, platformBytesMax: number): number {
  return Math.min(platformBytesMax, Math.max(containerBytesMin, Math.floor(modelMemoryBytes * share)));
}
