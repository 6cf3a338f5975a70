import { openNvmlCalls } from "../native/index.ts";
import { readGpus } from "./read-gpus.ts";

/** Command-line arguments of the process that reads GPUs: the interval in milliseconds. */
export type GpuWorkerArguments = readonly [intervalMs: string];

const [intervalMs] = process.argv.slice(2) as unknown as GpuWorkerArguments;
await readGpus(() => openNvmlCalls(), Number(intervalMs));
