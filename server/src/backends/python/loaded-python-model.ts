import { readFile } from "node:fs/promises";
import type { LoadContext, LoadedModel } from "../backend.ts";
import { onMachine, type DeviceBytes } from "../device-bytes.ts";
import type { PythonInstance } from "./python-instance.ts";
import type { PythonWorker } from "./python-worker.ts";

/** How what a model holds is found out beside its processes' own memory. */
export interface PythonMeasures {
  /** Its workers, one that is about to be up among them. */
  readonly workers: () => Iterable<PythonWorker>;
  /** Of a file that several models share, what this one is charged with. */
  readonly chargedFileBytes: () => number;
  /** What processes hold of GPUs. */
  readonly gpuBytesOf: (pids: readonly number[]) => Promise<DeviceBytes>;
}

export interface LoadedPythonModelParts {
  readonly instances: readonly PythonInstance[];
  readonly spares: readonly PythonInstance[];
  readonly measures: PythonMeasures;
  /** Held as long as its workers may start. */
  readonly environment: Disposable;
}

/** A model in Python with its workers. */
export class LoadedPythonModel implements LoadedModel {
  readonly instances: readonly PythonInstance[];
  readonly spares: readonly PythonInstance[];
  readonly #measures: PythonMeasures;
  readonly #environment: Disposable;

  constructor({ instances, spares, measures, environment }: LoadedPythonModelParts) {
    this.instances = instances;
    this.spares = spares;
    this.#measures = measures;
    this.#environment = environment;
  }

  async memoryBytes(): Promise<DeviceBytes> {
    const pids = livingPids(this.#measures.workers());
    const [sizes, onGpus] = await Promise.all([Promise.all(pids.map(privateBytes)), this.#measures.gpuBytesOf(pids)]);
    return new Map([
      ...onMachine(sizes.reduce((sum, size) => sum + size, this.#measures.chargedFileBytes())),
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

/** Takes memory for one more worker, as much as the largest of the model's workers holds. Throws UNAVAILABLE where there is none. */
export async function roomForAnother(
  workers: Iterable<PythonWorker>,
  { reserveMore }: LoadContext,
): Promise<AsyncDisposable | null> {
  const sizes = await Promise.all(livingPids(workers).map(privateBytes));
  return reserveMore?.(onMachine(Math.max(0, ...sizes))) ?? null;
}

function livingPids(workers: Iterable<PythonWorker>): readonly number[] {
  return Array.from(workers).flatMap(({ pid, alive }) => (alive ? [pid] : []));
}

/** Private pages of a process: what ending it would give back. 0 when it has just ended. */
async function privateBytes(pid: number): Promise<number> {
  let rollup: string;
  try {
    rollup = await readFile(`/proc/${pid}/smaps_rollup`, "latin1");
  } catch (error) {
    // That it may not be read is no zero: the budget would hold nothing.
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH") return 0;
    throw error;
  }
  let kibibytes = 0;
  for (const match of rollup.matchAll(/^Private_\w+:\s+(\d+) kB$/gm)) kibibytes += Number(match[1]);
  return kibibytes * 1024;
}
