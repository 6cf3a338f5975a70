import { rm } from "node:fs/promises";
import type { ContainerEnd, HostedContainer, InstanceAddress, InstanceUsage } from "../index.ts";
import { endRemains, type LastingProcess } from "@galatea/base/processes";
import type { ContainerProcess } from "./container-file.ts";
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
  readonly bootId: string;
  /** Whether the host lets go of what it stops. */
  readonly isDetached: () => boolean;
  /** See readOomKillCount. */
  readonly oomKillCount?: () => number | null;
}

/** A process that answers the container contract on a Unix socket. */
export class ProcessContainer implements HostedContainer {
  /** For the platform's next life. */
  readonly process: ContainerProcess;
  readonly address: InstanceAddress;
  readonly ended: Promise<ContainerEnd>;
  readonly #running: LastingProcess;
  readonly #isDetached: () => boolean;
  readonly #directory: string;
  readonly #machine: MachineGpus;
  readonly #oomKillCount: () => number | null;
  /** The kernel's count when the container was last checked. */
  #lastOomKillCount: number | null;
  #isEnded = false;

  constructor(
    running: LastingProcess,
    socketPath: string,
    { directory, machine, bootId, isDetached, oomKillCount = readOomKillCount }: ContainerSurroundings,
  ) {
    this.#oomKillCount = oomKillCount;
    this.#lastOomKillCount = oomKillCount();
    this.#running = running;
    this.process = { pid: running.pid, startTicks: running.startTicks, bootId, socketPath };
    this.#isDetached = isDetached;
    this.#machine = machine;
    this.#directory = directory;
    this.address = { kind: "socket", path: socketPath };
    this.ended = running.ended.then(async (end) => {
      this.#isEnded = true;
      const count = oomKillCount();
      const isOutOfMemory = count !== null && this.#lastOomKillCount !== null && count > this.#lastOomKillCount;
      await rm(socketPath, { force: true });
      // What its models had started in sessions of their own is this process's now; what a living one's have started is its own.
      await endRemains(({ family }) => family !== null);
      return { ...end, isOutOfMemory, lastLines: running.outputTail() };
    });
  }

  lastLines(): readonly string[] {
    return this.#running.outputTail();
  }

  async usage(): Promise<InstanceUsage | null> {
    if (this.#isEnded) return null;
    const used = await processTreeUsage(this.#running.pid);
    if (used === null) return null;
    const { cpuNs, memoryBytes, pids } = used;
    const gpus = gpuUseOf(this.#machine.gpus(), pids);
    return { cpuNs, memoryBytes, diskShare: await diskShareOf(this.#directory), gpus };
  }

  async workedNs(): Promise<number | null> {
    if (this.#isEnded) return null;
    this.#lastOomKillCount = this.#oomKillCount();
    return await processorNs(this.#running.pid);
  }

  /** Where the host has detached what runs, the process goes on alone, and `ended` never settles. */
  async stop(graceMs: number): Promise<void> {
    if (this.#isDetached()) return this.#running.release();
    if (!this.#isEnded) await this.#running.stop(graceMs);
    await this.ended;
  }
}
