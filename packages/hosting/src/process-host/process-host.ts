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
  type ModelHost,
} from "../index.ts";
import { adoptLasting, adoptOrphans, startLasting, type LastingProcess } from "@galatea/base/processes";
import { readBootId, type ContainerProcess } from "./container-file.ts";
import { LeftInstances, collectLeftContents } from "./left-instances.ts";
import { ProcessContainer, type MachineGpus } from "./process-container.ts";
import { ProcessPlace, type ProcessDirectories } from "./process-place.ts";

export interface ContainerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment; the instance's own variables are to be part of it. */
  readonly env: Readonly<Record<string, string>>;
}

/** What a container is started for. */
export interface ContainerStart {
  readonly spec: ContainerSpec;
  /** What /opt/ml means to it; exists. The container writes nothing there. */
  readonly mlRoot: string;
  /** Where it is to answer. */
  readonly socketPath: string;
}

export interface ProcessHostOptions {
  /** What to start so that the container contract is answered on the socket. */
  readonly commandFor: (start: ContainerStart) => ContainerCommand;
  /** Made when absent; its path has to be short: a Unix socket's name has 107 bytes. */
  readonly socketsDirectory: string;
  /** One directory per instance below it, on the unpacker's file system. */
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
 * Instances as processes of this machine, each container with a directory and a Unix socket. They outlive this process when it is killed, and
 * when it detaches them: the next one over the same directories adopts them.
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

  async resume(wanted: readonly InstanceOwner[]): Promise<ReadonlySet<string>> {
    const { instancesDirectory, unpacker } = this.#options;
    await mkdir(instancesDirectory, { recursive: true });
    await this.#left.open(instancesDirectory, wanted, this.#options.clock);
    if (unpacker.contentDirectory !== null) await collectLeftContents(unpacker.contentDirectory);
    return this.#left.ids;
  }

  claim(owner: InstanceOwner): string | null {
    return this.#left.claim(owner);
  }

  detach(): void {
    this.#isDetached = true;
  }

  open({ instanceId, owner, containers }: InstanceSpec): HostedInstance {
    const { instancesDirectory, store, unpacker, clock, logger } = this.#options;
    const places = containers.map((spec, index) => {
      const id = index === 0 ? instanceId : `${instanceId}-${index + 1}`;
      return new ProcessPlace({
        spec,
        position: index + 1,
        directory: join(instancesDirectory, id),
        owner,
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
      places,
      leave: async () => {
        if (!this.#goesOn(owner)) await Promise.all(places.map((place) => place.leave()));
      },
      [Symbol.asyncDispose]: async () => void (await Promise.all(places.map((place) => place[Symbol.asyncDispose]()))),
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
    // A socket file outlives its process, and a bind to an existing name fails.
    await rm(socketPath, { force: true });
    signal.throwIfAborted();
    const { mlRoot, outputDirectory } = at;
    const { command, args, env } = commandFor({ spec, mlRoot, socketPath });
    const output = { outputDirectory, onLine: spec.output, clock };
    return this.#watched(await startLasting({ command, args, env, cwd: mlRoot, ...output }), socketPath, owner);
  }

  #adopt(process: ContainerProcess, { id, owner, spec, at }: ContainerAt): ProcessContainer | null {
    const { bootId, socketPath } = process;
    if (bootId !== this.#bootId || socketPath !== this.#socketPath(id) || !existsSync(socketPath)) return null;
    const { outputDirectory } = at;
    const running = adoptLasting(process, { outputDirectory, onLine: spec.output, clock: this.#options.clock });
    return running === null ? null : this.#watched(running, socketPath, owner);
  }

  #watched(running: LastingProcess, socketPath: string, owner: InstanceOwner | null): ProcessContainer {
    const container = new ProcessContainer(running, socketPath, {
      directory: this.#options.instancesDirectory,
      machine: { gpus: this.#options.gpus ?? noGpus },
      bootId: this.#bootId,
      isDetached: () => this.#goesOn(owner),
    });
    this.#running.add(container);
    void container.ended.then(() => this.#running.delete(container));
    return container;
  }

  #goesOn(owner: InstanceOwner | null): boolean {
    return this.#isDetached && owner !== null;
  }

  #socketPath(id: string): string {
    return join(this.#options.socketsDirectory, `${id}.sock`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((container) => container.stop(0)));
  }
}
