import { rm } from "node:fs/promises";
import type { ContainerEnd, HostedContainer, InstanceAddress, InstanceUsage } from "../../hosting/index.ts";
import { endRemains, type SpawnedProcess } from "../../processes/index.ts";
import { diskShareOf } from "./disk-share.ts";
import { processorNs, processTreeUsage } from "./process-usage.ts";

/** A child process that answers the container contract on a Unix socket. */
export class ProcessContainer implements HostedContainer {
  readonly address: InstanceAddress;
  readonly ended: Promise<ContainerEnd>;
  readonly #child: SpawnedProcess;
  readonly #directory: string;
  #isEnded = false;

  /** `directory`: on the disk of the instance's models. */
  constructor(child: SpawnedProcess, socketPath: string, directory: string) {
    this.#child = child;
    this.#directory = directory;
    this.address = { kind: "socket", path: socketPath };
    this.ended = child.ended.then(async (end) => {
      this.#isEnded = true;
      await rm(socketPath, { force: true });
      // What its models had started in sessions of their own is this process's now; what a living one's have started is its own.
      await endRemains(({ family }) => family !== null);
      return { ...end, lastLines: child.outputTail() };
    });
  }

  lastLines(): readonly string[] {
    return this.#child.outputTail();
  }

  async usage(): Promise<InstanceUsage | null> {
    if (this.#isEnded) return null;
    const used = await processTreeUsage(this.#child.pid);
    return used === null ? null : { ...used, diskShare: await diskShareOf(this.#directory) };
  }

  async workedNs(): Promise<number | null> {
    return this.#isEnded ? null : await processorNs(this.#child.pid);
  }

  async stop(graceMs: number): Promise<void> {
    if (!this.#isEnded) await this.#child.stop(graceMs);
    await this.ended;
  }
}
