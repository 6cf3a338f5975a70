import { rm } from "node:fs/promises";
import type { ContainerEnd, HostedContainer, InstanceAddress, InstanceUsage } from "../instances/index.ts";
import { killOrphans, type DetachedProcess } from "@galatea/base/processes";
import type { ContainerProcess } from "./container-file.ts";
import { readDiskUsage } from "./disk-usage.ts";
import { gpuUsageOf, type MachineGpu } from "./gpu-usage.ts";
import { readOomKillCount } from "./oom-kills.ts";
import { readProcessCpuNs, readProcessTreeUsage } from "./process-usage.ts";

/** Reads the machine's GPUs; empty without a GPU or a driver that reports. */
export interface MachineGpus {
  readonly gpus: () => readonly MachineGpu[];
}

interface ContainerSurroundings {
  /** A directory on the file system of the instance's models. */
  readonly directory: string;
  readonly machine: MachineGpus;
  readonly bootId: string;
  /** Returns whether `stop` leaves the process running for the next run of the platform. */
  readonly isDetached: () => boolean;
  /** Replaces `readOomKillCount` in tests. */
  readonly oomKillCount?: () => number | null;
}

/** A process that serves the container contract on a Unix socket. */
export class ProcessContainer implements HostedContainer {
  /** The identity that the next run of the platform adopts it by. */
  readonly process: ContainerProcess;
  readonly address: InstanceAddress;
  readonly ended: Promise<ContainerEnd>;
  readonly #running: DetachedProcess;
  readonly #isDetached: () => boolean;
  readonly #directory: string;
  readonly #machine: MachineGpus;
  readonly #oomKillCount: () => number | null;
  /** The kernel's count of OOM kills at the last `workedNs`. A higher count at the end marks the end as out of memory. */
  #lastOomKillCount: number | null;
  #isEnded = false;

  constructor(
    running: DetachedProcess,
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
      // Kills the orphans of its models, which left its process group and are children of this process now. Descendants of running containers
      // are still children of those.
      await killOrphans(({ workerFamily: family }) => family !== null);
      return { ...end, isOutOfMemory, lastLines: running.outputTail() };
    });
  }

  lastLines(): readonly string[] {
    return this.#running.outputTail();
  }

  async usage(): Promise<InstanceUsage | null> {
    if (this.#isEnded) return null;
    const used = await readProcessTreeUsage(this.#running.pid);
    if (used === null) return null;
    const { cpuNs, memoryBytes, pids } = used;
    const gpus = gpuUsageOf(this.#machine.gpus(), pids);
    return { cpuNs, memoryBytes, diskShare: await readDiskUsage(this.#directory), gpus };
  }

  async workedNs(): Promise<number | null> {
    if (this.#isEnded) return null;
    this.#lastOomKillCount = this.#oomKillCount();
    return await readProcessCpuNs(this.#running.pid);
  }

  /** Stops the process; on a detached host releases it instead, and `ended` stays pending. */
  async stop(graceMs: number): Promise<void> {
    if (this.#isDetached()) return this.#running.release();
    if (!this.#isEnded) await this.#running.stop(graceMs);
    await this.ended;
  }
}
