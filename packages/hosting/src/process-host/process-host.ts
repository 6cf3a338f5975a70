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
import { adoptOrphans, spawnProcess } from "@galatea/base/processes";
import { LeftInstances, collectLeftContents } from "./left-instances.ts";
import { ProcessContainer, type MachineGpus } from "./process-container.ts";
import { ProcessPlace } from "./process-place.ts";

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

const noGpus = () => [];
const socketPathBytesMax = 107;

/** Instances as child processes of this one, each container with a directory and a Unix socket. They die with this process, however it dies. */
export class ProcessHost implements ModelHost {
  readonly #options: ProcessHostOptions;
  readonly #left = new LeftInstances();
  readonly #running = new Set<ProcessContainer>();

  constructor(options: ProcessHostOptions) {
    this.#options = options;
    adoptOrphans();
  }

  async resume(wanted: readonly InstanceOwner[]): Promise<void> {
    const { instancesDirectory, unpacker } = this.#options;
    await mkdir(instancesDirectory, { recursive: true });
    await this.#left.open(instancesDirectory, wanted);
    if (unpacker.contentDirectory !== null) await collectLeftContents(unpacker.contentDirectory);
  }

  open({ instanceId, containers }: InstanceSpec): HostedInstance {
    const { instancesDirectory, store, unpacker, clock, logger } = this.#options;
    const places = containers.map((spec, index) => {
      const id = index === 0 ? instanceId : `${instanceId}-${index + 1}`;
      return new ProcessPlace({
        spec,
        position: index + 1,
        directory: join(instancesDirectory, id),
        left: this.#left,
        store,
        unpacker,
        clock,
        logger,
        startContainer: (mlRoot, signal) => this.#start({ id, spec, mlRoot }, signal),
      });
    });
    return {
      places,
      leave: async () => void (await Promise.all(places.map((place) => place.leave()))),
      [Symbol.asyncDispose]: async () => void (await Promise.all(places.map((place) => place[Symbol.asyncDispose]()))),
    };
  }

  async #start(
    { id, spec, mlRoot }: { readonly id: string; readonly spec: ContainerSpec; readonly mlRoot: string },
    signal: AbortSignal,
  ): Promise<ProcessContainer> {
    const { socketsDirectory, instancesDirectory, clock, commandFor } = this.#options;
    const socketPath = join(socketsDirectory, `${id}.sock`);
    if (Buffer.byteLength(socketPath) > socketPathBytesMax) {
      throw new Error(
        `the socket path ${socketPath} is longer than ${socketPathBytesMax} bytes; choose a shorter directory`,
      );
    }
    await mkdir(socketsDirectory, { recursive: true, mode: 0o700 });
    // A socket file outlives its process, and a bind to an existing name fails.
    await rm(socketPath, { force: true });
    signal.throwIfAborted();
    const { command, args, env } = commandFor({ spec, mlRoot, socketPath });
    const child = await spawnProcess({
      command,
      args,
      env,
      cwd: mlRoot,
      extraFds: [],
      onLine: (line) => spec.output(line),
      onExit: () => {},
      clock,
    });
    const container = new ProcessContainer(child, socketPath, {
      directory: instancesDirectory,
      machine: { gpus: this.#options.gpus ?? noGpus },
    });
    this.#running.add(container);
    void container.ended.then(() => this.#running.delete(container));
    return container;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((container) => container.stop(0)));
  }
}
