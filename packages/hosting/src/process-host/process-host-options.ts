import type { Clock, Logger } from "@galatea/base";
import type { BuiltInRuntime } from "../definitions/index.ts";
import type { ContainerSpec } from "../instances/index.ts";
import type { ArchiveUnpacker, ObjectStore } from "../objects/index.ts";
import type { ImageRunner } from "./image-runner.ts";
import type { MachineGpus } from "./process-container.ts";

export interface ContainerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** The complete environment of the process, including the variables of the spec. */
  readonly env: Readonly<Record<string, string>>;
}

/** The input of `commandFor`: one start of a built-in container. */
export interface ContainerStart {
  readonly spec: ContainerSpec;
  readonly runtime: BuiltInRuntime;
  /** An existing directory that the container uses, read-only, as /opt/ml. */
  readonly mlRoot: string;
  /** The Unix socket that the container must listen on. */
  readonly socketPath: string;
}

export interface ProcessHostOptions {
  /** Returns the command of a process that serves the container contract on the socket. */
  readonly commandFor: (start: ContainerStart) => ContainerCommand;
  /**
   * Directory for the sockets of this host, which no other program may use. Created if absent. Its path must be short, because the path of
   * a Unix socket has at most 107 bytes.
   */
  readonly socketsDirectory: string;
  /** Directory with one subdirectory for each container. It must be on the unpacker's file system, because files are hard-linked. */
  readonly instancesDirectory: string;
  readonly store: ObjectStore;
  readonly unpacker: ArchiveUnpacker;
  /** Runs containers of images; null if there is no container engine. The caller disposes it after the host. */
  readonly images?: ImageRunner | null;
  /** Returns the current state of the machine's GPUs. */
  readonly gpus?: MachineGpus["gpus"];
  readonly clock: Clock;
  readonly logger: Logger;
}
