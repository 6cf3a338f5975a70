import { totalmem } from "node:os";
import { ByteBudget } from "@galatea/base";

/** Default share of the memory for requests in flight; the rest is for models, code and the system. */
const share = 1 / 4;

/** Returns the process's budget of bytes in flight: the requested size, else a share of the available memory. */
export function requestMemory(askedBytes: number | null): ByteBudget {
  return new ByteBudget(
    askedBytes ?? memoryShare({ machineBytes: totalmem(), cgroupBytes: process.constrainedMemory() }),
  );
}

/** The memory of the machine, and the limit of this process's cgroup: 0, or larger than the machine, without a limit. */
interface MachineMemory {
  readonly machineBytes: number;
  readonly cgroupBytes: number;
}

export function memoryShare(memory: MachineMemory): number {
  return Math.floor(limitedMemoryBytes(memory) * share);
}

/** Returns the memory of the machine, at most the limit of this process's cgroup. */
export function limitedMemoryBytes({ machineBytes, cgroupBytes }: MachineMemory): number {
  return cgroupBytes > 0 ? Math.min(machineBytes, cgroupBytes) : machineBytes;
}

/** Minimum with which an instance can serve a request of SageMaker's maximum size, with its response. */
const containerBytesMin = 64 * 2 ** 20;

/** Returns the budget of an instance's container: the same share of its models' memory, at most the platform's own. */
export function containerRequestBytes(modelMemoryBytes: number, platformBytesMax: number): number {
  return Math.min(platformBytesMax, Math.max(containerBytesMin, Math.floor(modelMemoryBytes * share)));
}
