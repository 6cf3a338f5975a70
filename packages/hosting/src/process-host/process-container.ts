import { rm } from "node:fs/promises";
import type { ContainerEnd, HostedContainer, InstanceAddress, InstanceUsage } from "../index.ts";
import { endRemains, type SpawnedProcess } from "@galatea/base/processes";
import { diskShareOf } from "./disk-share.ts";
import { gpuUseOf, type MachineGpu } from "./gpu-use.ts";
import { readOomKillCount } from "./oom-kills.ts";
import { processorNs, processTreeUsage } from "./process-usage.ts";

/** The machine's GPUs as they are now; none where there is none, or none that tells. */
export interface MachineGpus {
  readonly gpus: () => readonly MachineGpu[];
}

interface ContainerSurroundings {
  /** On the disk of the instance's models. */
  readonly directory: string;
  readonly machine: MachineGpus;
  /** See readOomKillCount. */
  readonly oomKillCount?: () => number | null;
}

/** A child process that answers the container contract on a Unix socket. */
export class ProcessContainer implements HostedContainer {
  readonly address: InstanceAddress;
  readonly ended: Promise<ContainerEnd>;
  readonly #child: SpawnedProcess;
  readonly #directory: string;
  readonly #machine: MachineGpus;
  readonly #oomKillCount: () => number | null;
  /** The kernel's count when the container was last checked. */
  #lastOomKillCount: number | null;
  #isEnded = false;

  constructor(
    child: SpawnedProcess,
    socketPath: string,
    { directory, machine, oomKillCount = readOomKillCount }: ContainerSurroundings,
  ) {
    this.#oomKillCount = oomKillCount;
    this.#lastOomKillCount = oomKillCount();
    this.#child = child;
    this.#machine = machine;
    this.#directory = directory;
    this.address = { kind: "socket", path: socketPath };
    this.ended = child.ended.then(async (end) => {
      this.#isEnded = true;
      const count = oomKillCount();
      const isOutOfMemory = count !== null && this.#lastOomKillCount !== null && count > this.#lastOomKillCount;
      await rm(socketPath, { force: true });
      // What its models had started in sessions of their own is this process's now; what a living one's have started is its own.
      await endRemains(({ family }) => family !== null);
      return { ...end, isOutOfMemory, lastLines: child.outputTail() };
    });
  }

  lastLines(): readonly string[] {
    return this.#child.outputTail();
  }

  async usage(): Promise<InstanceUsage | null> {
    if (this.#isEnded) return null;
    const used = await processTreeUsage(this.#child.pid);
    if (used === null) return null;
    const { cpuNs, memoryBytes, pids } = used;
    const gpus = gpuUseOf(this.#machine.gpus(), pids);
    return { cpuNs, memoryBytes, diskShare: await diskShareOf(this.#directory), gpus };
  }

  async workedNs(): Promise<number | null> {
    if (this.#isEnded) return null;
    this.#lastOomKillCount = this.#oomKillCount();
    return await processorNs(this.#child.pid);
  }

  async stop(graceMs: number): Promise<void> {
    if (!this.#isEnded) await this.#child.stop(graceMs);
    await this.ended;
  }
}
