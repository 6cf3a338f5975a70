import { readFile } from "node:fs/promises";
import type { LoadContext, LoadedModel } from "../backend.ts";
import { machineBytes, type DeviceBytes } from "../device-bytes.ts";
import type { PythonInstance } from "./python-instance.ts";
import type { PythonWorker } from "./python-worker.ts";

/** Functions that measure the memory of a model, including memory outside of its processes. */
export interface PythonMemorySources {
  /** Returns the workers of the model, including one that is starting. */
  readonly workers: () => Iterable<PythonWorker>;
  /** Returns the bytes of a file that several models share, if the file is charged to this model; otherwise 0. */
  readonly chargedFileBytes: () => number;
  /** Returns the GPU memory that processes use. */
  readonly gpuBytesOf: (pids: readonly number[]) => Promise<DeviceBytes>;
}

export interface LoadedPythonModelDependencies {
  readonly instances: readonly PythonInstance[];
  readonly spares: readonly PythonInstance[];
  readonly measures: PythonMemorySources;
  /** A lease of the model's environment. It is disposed when no worker of the model can start any more. */
  readonly environment: Disposable;
}

/** A Python model with its workers. */
export class LoadedPythonModel implements LoadedModel {
  readonly instances: readonly PythonInstance[];
  readonly spares: readonly PythonInstance[];
  readonly #measures: PythonMemorySources;
  readonly #environment: Disposable;

  constructor({ instances, spares, measures, environment }: LoadedPythonModelDependencies) {
    this.instances = instances;
    this.spares = spares;
    this.#measures = measures;
    this.#environment = environment;
  }

  async memoryBytes(): Promise<DeviceBytes> {
    const pids = livingPids(this.#measures.workers());
    const [sizes, onGpus] = await Promise.all([Promise.all(pids.map(privateBytes)), this.#measures.gpuBytesOf(pids)]);
    return new Map([
      ...machineBytes(sizes.reduce((sum, size) => sum + size, this.#measures.chargedFileBytes())),
      ...onGpus,
    ]);
  }

  abandon(reason: string): void {
    for (const instance of this.#all) instance.abandon(reason);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    using _environment = this.#environment;
    await Promise.all(this.#all.map((instance) => instance[Symbol.asyncDispose]()));
  }

  get #all(): readonly PythonInstance[] {
    return [...this.instances, ...this.spares];
  }
}

/** Reserves memory for one more worker: as much as the model's largest worker uses. Throws UNAVAILABLE if that much memory is not free. */
export async function reserveWorker(
  workers: Iterable<PythonWorker>,
  { reserveMore }: LoadContext,
): Promise<AsyncDisposable | null> {
  const sizes = await Promise.all(livingPids(workers).map(privateBytes));
  return reserveMore?.(machineBytes(Math.max(0, ...sizes))) ?? null;
}

function livingPids(workers: Iterable<PythonWorker>): readonly number[] {
  return Array.from(workers).flatMap(({ pid, alive }) => (alive ? [pid] : []));
}

/** Returns the bytes in private pages of a process, which become free when the process ends; 0 if it has just ended. */
async function privateBytes(pid: number): Promise<number> {
  let rollup: string;
  try {
    rollup = await readFile(`/proc/${pid}/smaps_rollup`, "latin1");
  } catch (error) {
    // A value that cannot be read must not count as zero: too little memory would then be reserved.
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH") return 0;
    throw error;
  }
  let kibibytes = 0;
  for (const match of rollup.matchAll(/^Private_\w+:\s+(\d+) kB$/gm)) kibibytes += Number(match[1]);
  return kibibytes * 1024;
}
