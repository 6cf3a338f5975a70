import { totalmem } from "node:os";
import { ByteBudget } from "@galatea/base";

/** The part of the memory that requests in flight may take where nobody says more; the rest is for models, code and the machine. */
const share = 1 / 4;

/** The process's budget of bytes in flight: as asked, else a share of what the process may have. */
export function requestMemory(askedBytes: number | null): ByteBudget {
  return new ByteBudget(
    askedBytes ?? memoryShare({ machineBytes: totalmem(), cgroupBytes: process.constrainedMemory() }),
  );
}

/** `cgroupBytes` is 0, or larger than the machine, where no limit is set. */
export function memoryShare({ machineBytes, cgroupBytes }: { machineBytes: number; cgroupBytes: number }): number {
  const bytes = cgroupBytes > 0 ? Math.min(machineBytes, cgroupBytes) : machineBytes;
  return Math.floor(bytes * share);
}

/** Below this an instance could not take a request of the size that SageMaker lets in, and its answer. */
const containerBytesMin = 64 * 2 ** 20;

/** For the container of an instance: as much for each byte of its models as the machine has, and no more than the platform may take. */
export function containerRequestBytes(modelMemoryBytes: number, platformBytesMax: number): number {
  return Math.min(platformBytesMax, Math.max(containerBytesMin, Math.floor(modelMemoryBytes * share)));
}
