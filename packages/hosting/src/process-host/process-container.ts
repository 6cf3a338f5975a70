import { rm } from "node:fs/promises";
import type { ContainerEnd, HostedContainer, InstanceAddress, InstanceUsage } from "../instances/index.ts";
import { killOrphans, type DetachedProcess } from "@galatea/base/processes";
import type { ContainerProcess } from "./container-file.ts";
import { readDiskUsage } from "./disk-usage.ts";
import { gpuUsageOf, type MachineGpu } from "./gpu-usage.ts";
import { readOomKillCount } from "./oom-kills.ts";
import { ProcessTreeMeter, readProcessCpuNs } from "./process-usage.ts";

/** Access to the machine's GPUs. `gpus` returns an empty list if there is no GPU, or no driver that reports one. */
export interface MachineGpus {
  readonly gpus: () => readonly MachineGpu[];
}

interface ContainerSurroundings {
  /** A directory on the file system of the instance's models. */
  readonly directory: string;
  readonly machine: MachineGpus;
  readonly bootId: string;
  /** Returns true if `stop` keeps the process running for the next run of the platform. */
  readonly isDetached: () => boolean;
  /** Replaces `readOomKillCount` in tests. */
  readonly oomKillCount?: () => number | null;
}

/** A process that serves the container contract on a Unix socket. */
export class ProcessContainer implements HostedContainer {
  /** The identity by which the next run of the platform adopts the process. */
  readonly process: ContainerProcess;
  readonly address: InstanceAddress;
  readonly ended: Promise<ContainerEnd>;
  readonly #running: DetachedProcess;
  readonly #meter: ProcessTreeMeter;
  readonly #isDetached: () => boolean;
  readonly #directory: string;
  readonly #machine: MachineGpus;
  readonly #oomKillCount: () => number | null;
  /**
   * The kernel's count of OOM kills at the last `workedNs`. If the count is higher when the process ends, the end is reported as out of
   * memory.
   */
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
    this.#meter = new ProcessTreeMeter(running.pid);
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
      // Kills orphaned worker processes of the container's models. They have left the container's process group and are now children of this
      // process. Workers of running containers are still children of those containers.
      await killOrphans(({ workerFamily: family }) => family !== null);
      return { ...end, isOutOfMemory, lastLines: running.outputTail() };
    });
  }

  lastLines(): readonly string[] {
    return this.#running.outputTail();
  }

  async usage(): Promise<InstanceUsage | null> {
    if (this.#isEnded) return null;
    const used = await this.#meter.usage();
    if (used === null) return null;
    const { cpuNs, memoryBytes, pids } = used;
    const gpus = gpuUsageOf(this.#machine.gpus(), pids);
    return { cpuNs, memoryBytes, diskShare: await readDiskUsage(this.#directory), gpus };
  }

  async workedNs(): Promise<number | null> {
    if (this.#isEnded) return null;
    this.#lastOomKillCount = this.#oomKillCount();
    return readProcessCpuNs(this.#running.pid);
  }

  /** Stops the process. If the host is detached, only releases the process; `ended` stays pending then. */
  async stop(graceMs: number): Promise<void> {
    if (this.#isDetached()) return this.#running.release();
    if (!this.#isEnded) await this.#running.stop(graceMs);
    await this.ended;
  }
}
