import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock, Logger } from "@galatea/base";
import type { ArchiveUnpacker, ObjectStore } from "../objects/index.ts";
import {
  type ContainerSpec,
  type HostedInstance,
  type InstanceOwner,
  type InstanceSpec,
  type KeptInstance,
  type ModelHost,
} from "../index.ts";
import { adoptDetached, adoptOrphans, startDetached, type DetachedProcess } from "@galatea/base/processes";
import { readBootId, type ContainerProcess } from "./container-file.ts";
import { LeftInstances, collectLeftContents } from "./left-instances.ts";
import { ProcessContainer, type MachineGpus } from "./process-container.ts";
import { ProcessSlot, type ProcessDirectories } from "./process-slot.ts";

export interface ContainerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the process, the variables of the spec included. */
  readonly env: Readonly<Record<string, string>>;
}

/** The input of `commandFor`. */
export interface ContainerStart {
  readonly spec: ContainerSpec;
  /** The existing directory that stands for /opt/ml. The container only reads it. */
  readonly mlRoot: string;
  /** The Unix socket that the container must listen on. */
  readonly socketPath: string;
}

export interface ProcessHostOptions {
  /** Returns the command of a process that serves the container contract on the socket. */
  readonly commandFor: (start: ContainerStart) => ContainerCommand;
  /** For the sockets of this host alone, created when absent. Keep its path short: the path of a Unix socket has at most 107 bytes. */
  readonly socketsDirectory: string;
  /** Gets one directory for each container. Must be on the unpacker's file system, for hard links. */
  readonly instancesDirectory: string;
  readonly store: ObjectStore;
  readonly unpacker: ArchiveUnpacker;
  /** The machine's GPUs as they are now. */
  readonly gpus?: MachineGpus["gpus"];
  readonly clock: Clock;
  readonly logger: Logger;
}

interface ContainerAt {
  readonly id: string;
  readonly owner: InstanceOwner | null;
  readonly spec: ContainerSpec;
  readonly at: ProcessDirectories;
}

const noGpus = () => [];
const socketPathBytesMax = 107;

/**
 * Runs instances as local processes, one process, directory and Unix socket for each container. The processes outlive this one when it is
 * killed or calls `detach`; a later host over the same directories adopts them.
 */
export class ProcessHost implements ModelHost {
  readonly #options: ProcessHostOptions;
  readonly #left = new LeftInstances();
  readonly #running = new Set<ProcessContainer>();
  readonly #bootId = readBootId();
  #isDetached = false;

  constructor(options: ProcessHostOptions) {
    this.#options = options;
    adoptOrphans();
  }

  async resume(desired: readonly InstanceOwner[]): Promise<ReadonlySet<string>> {
    const { instancesDirectory, socketsDirectory, unpacker, clock } = this.#options;
    await mkdir(instancesDirectory, { recursive: true });
    await mkdir(socketsDirectory, { recursive: true, mode: 0o700 });
    await this.#left.open({ directory: instancesDirectory, socketsDirectory, desired, clock });
    if (unpacker.contentDirectory !== null) await collectLeftContents(unpacker.contentDirectory);
    return this.#left.ids;
  }

  claim(owner: InstanceOwner): KeptInstance | null {
    return this.#left.claim(owner);
  }

  detach(): void {
    this.#isDetached = true;
  }

  open({ instanceId, node, owner, containers }: InstanceSpec): HostedInstance {
    const { instancesDirectory, store, unpacker, clock, logger } = this.#options;
    const slots = containers.map((spec, index) => {
      const id = index === 0 ? instanceId : `${instanceId}-${index + 1}`;
      return new ProcessSlot({
        spec,
        position: index + 1,
        directory: join(instancesDirectory, id),
        owner,
        node,
        store,
        unpacker,
        clock,
        logger,
        processes: {
          start: (at, signal) => this.#start({ id, owner, spec, at }, signal),
          adopt: (identity, at) => this.#adopt(identity, { id, owner, spec, at }),
        },
      });
    });
    return {
      slots,
      leave: async () => {
        if (!this.#staysRunning(owner)) await Promise.all(slots.map((slot) => slot.leave()));
      },
      [Symbol.asyncDispose]: async () => void (await Promise.all(slots.map((slot) => slot[Symbol.asyncDispose]()))),
    };
  }

  async #start({ id, owner, spec, at }: ContainerAt, signal: AbortSignal): Promise<ProcessContainer> {
    const { socketsDirectory, clock, commandFor } = this.#options;
    const socketPath = this.#socketPath(id);
    if (Buffer.byteLength(socketPath) > socketPathBytesMax) {
      throw new Error(
        `the socket path ${socketPath} is longer than ${socketPathBytesMax} bytes; choose a shorter directory`,
      );
    }
    await mkdir(socketsDirectory, { recursive: true, mode: 0o700 });
    // A socket file outlives its process, and binding to an existing path fails with EADDRINUSE.
    await rm(socketPath, { force: true });
    signal.throwIfAborted();
    const { mlRoot, outputDirectory } = at;
    const { command, args, env } = commandFor({ spec, mlRoot, socketPath });
    const output = { outputDirectory, onLine: spec.output, clock };
    return this.#track(await startDetached({ command, args, env, cwd: mlRoot, ...output }), socketPath, owner);
  }

  #adopt(process: ContainerProcess, { id, owner, spec, at }: ContainerAt): ProcessContainer | null {
    const { bootId, socketPath } = process;
    if (bootId !== this.#bootId || socketPath !== this.#socketPath(id) || !existsSync(socketPath)) return null;
    const { outputDirectory } = at;
    const running = adoptDetached(process, { outputDirectory, onLine: spec.output, clock: this.#options.clock });
    return running === null ? null : this.#track(running, socketPath, owner);
  }

  #track(running: DetachedProcess, socketPath: string, owner: InstanceOwner | null): ProcessContainer {
    const container = new ProcessContainer(running, socketPath, {
      directory: this.#options.instancesDirectory,
      machine: { gpus: this.#options.gpus ?? noGpus },
      bootId: this.#bootId,
      isDetached: () => this.#staysRunning(owner),
    });
    this.#running.add(container);
    void container.ended.then(() => this.#running.delete(container));
    return container;
  }

  #staysRunning(owner: InstanceOwner | null): boolean {
    return this.#isDetached && owner !== null;
  }

  #socketPath(id: string): string {
    return join(this.#options.socketsDirectory, `${id}.sock`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((container) => container.stop(0)));
  }
}
