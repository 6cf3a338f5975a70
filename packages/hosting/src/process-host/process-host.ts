import { mkdir } from "node:fs/promises";
import { adoptOrphans, type DetachedProcess } from "@galatea/base/processes";
import type {
  AdoptableInstance,
  HostedContainer,
  HostedInstance,
  InstanceOwner,
  InstanceSpec,
  ModelHost,
} from "../instances/index.ts";
import { AdoptableInstances, deleteAllUnlinkedContents } from "./adoptable-instances.ts";
import { readBootId } from "./container-file.ts";
import { ProcessContainer } from "./process-container.ts";
import type { ProcessHostOptions } from "./process-host-options.ts";
import { ProcessSlot } from "./process-slot.ts";

const noGpus = () => [];

/**
 * Runs instances on this machine: built-in containers as local processes, with a directory and a Unix socket each, and images through an
 * `ImageRunner`. Both keep running if this process is killed or calls `detach`. A later host with the same directories adopts them.
 */
export class ProcessHost implements ModelHost {
  readonly #options: ProcessHostOptions;
  readonly #left = new AdoptableInstances();
  readonly #running = new Set<HostedContainer>();
  readonly #bootId = readBootId();
  #isDetached = false;

  constructor(options: ProcessHostOptions) {
    this.#options = options;
    adoptOrphans();
  }

  get runsImages(): boolean {
    return (this.#options.images ?? null) !== null;
  }

  async resume(desired: readonly InstanceOwner[]): Promise<ReadonlySet<string>> {
    const { instancesDirectory, socketsDirectory, unpacker, images = null, clock } = this.#options;
    await mkdir(instancesDirectory, { recursive: true });
    await mkdir(socketsDirectory, { recursive: true, mode: 0o700 });
    await this.#left.open({ directory: instancesDirectory, socketsDirectory, desired, clock });
    if (unpacker.contentDirectory !== null) await deleteAllUnlinkedContents(unpacker.contentDirectory);
    await images?.keepOnly(this.#left.ids);
    return this.#left.ids;
  }

  claim(owner: InstanceOwner): AdoptableInstance | null {
    return this.#left.claim(owner);
  }

  detach(): void {
    this.#isDetached = true;
  }

  open({ instanceId, node, owner, budget, containers }: InstanceSpec): HostedInstance {
    const slots = containers.map((spec, index) => {
      const id = index === 0 ? instanceId : `${instanceId}-${index + 1}`;
      return new ProcessSlot({
        ...this.#options,
        id,
        instanceId,
        spec,
        position: index + 1,
        owner,
        node,
        budget,
        bootId: this.#bootId,
        isDetached: () => this.#staysRunning(owner),
        trackProcess: (running, socketPath) => this.#trackProcess(running, socketPath, owner),
        track: (container) => this.#track(container),
      });
    });
    return {
      slots,
      shutDown: async () => {
        if (!this.#staysRunning(owner)) await Promise.all(slots.map((slot) => slot.shutDown()));
      },
      [Symbol.asyncDispose]: async () => void (await Promise.all(slots.map((slot) => slot[Symbol.asyncDispose]()))),
    };
  }

  #trackProcess(running: DetachedProcess, socketPath: string, owner: InstanceOwner | null): ProcessContainer {
    const container = new ProcessContainer(running, socketPath, {
      directory: this.#options.instancesDirectory,
      machine: { gpus: this.#options.gpus ?? noGpus },
      bootId: this.#bootId,
      isDetached: () => this.#staysRunning(owner),
    });
    this.#track(container);
    return container;
  }

  #track(container: HostedContainer): void {
    this.#running.add(container);
    void container.ended.then(() => this.#running.delete(container));
  }

  #staysRunning(owner: InstanceOwner | null): boolean {
    return this.#isDetached && owner !== null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((container) => container.stop(0)));
  }
}
