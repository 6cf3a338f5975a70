import type { UnpackedModels } from "../model-cache/index.ts";
import type { ContainerDefinition, ContainerRuntime, InstanceBudget } from "../definitions/index.ts";
import type { NodeId } from "../nodes/index.ts";

/** The address of a container. */
export type InstanceAddress =
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

/** The purpose of an instance, by which the next run of the platform finds it again. */
export interface InstanceOwner {
  readonly endpointName: string;
  /** The fleet among those of its endpoint: of one variant in one generation, or of one inference component. */
  readonly fleetKey: string;
  /** The ordinal of the instance in its fleet. */
  readonly ordinal: number;
}

/** Returns a text that only equal owners have. */
export const ownerKey = ({ endpointName, fleetKey, ordinal }: InstanceOwner): string =>
  JSON.stringify([endpointName, fleetKey, ordinal]);

/** An instance of a previous run of the platform. */
export interface AdoptableInstance {
  readonly id: string;
  /** The node that runs it. */
  readonly node: NodeId;
}

/** The source of a container's models. */
export type ContainerModels =
  /** Downloaded completely before the container starts, within a time limit. */
  | { readonly kind: "one"; readonly container: ContainerDefinition; readonly bringMsMax: number }
  /** Downloaded on demand while it runs, from below a prefix. */
  | { readonly kind: "many"; readonly modelDataUrl: string };

/** One container of an instance: it answers the contract (`/ping`, `/invocations`, `/models`). */
export interface ContainerSpec {
  /** Title in lists of processes. */
  readonly title: string;
  readonly runtime: ContainerRuntime;
  readonly models: ContainerModels;
  /**
   * Variables of the model's definition and of the platform; of the platform's own environment only PATH and the like
   * are added.
   */
  readonly environment: Readonly<Record<string, string>>;
  /** Bytes of memory for models, which bound the container's loads. */
  readonly modelMemoryBytes: number;
  /** Maximum number of concurrent requests of its variant; null for no limit. */
  readonly concurrencyMax: number | null;
  /** Receives the lines the container prints; must not throw. */
  readonly output: (line: string) => void;
}

/** One instance of a variant: containers on one node that share its budget. */
export interface InstanceSpec {
  /** Letters, digits and dashes. */
  readonly instanceId: string;
  readonly node: NodeId;
  /** Null for an instance that a later run of the platform ends instead of adopting. */
  readonly owner: InstanceOwner | null;
  /** The resources that all containers share. */
  readonly budget: InstanceBudget;
  readonly containers: readonly [ContainerSpec, ...ContainerSpec[]];
}

export interface InstanceUsage {
  /** CPU time of all its processes since the start, in nanoseconds. */
  readonly cpuNs: number;
  /** Proportional set size of all its processes, in bytes. */
  readonly memoryBytes: number;
  /** Used share of the disk with its models, from 0 to 1. */
  readonly diskShare: number;
  /** Use of the node's GPUs, 1 for each whole one; null without GPUs or without a reading. */
  readonly gpus: GpuUsage | null;
}

export interface GpuUsage {
  /** The share of time in which the GPUs with its processes compute, for any process. */
  readonly busy: number;
  /** The share of the GPUs' memory that its own processes use. */
  readonly memory: number;
}

/** The end of a container. Exit code and signal are null for a container that a previous run of the platform started. */
export interface ContainerEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** True if the node's kernel killed a process for lack of memory shortly before. */
  readonly isOutOfMemory: boolean;
  /** The last lines of output, oldest first. */
  readonly lastLines: readonly string[];
}

/** A running container. */
export interface HostedContainer {
  readonly address: InstanceAddress;
  /** Resolves when the container's main process has been reaped; never rejects. */
  readonly ended: Promise<ContainerEnd>;
  /** Returns the last lines of output so far. */
  lastLines(): readonly string[];
  /** Resolves with null once it ended. */
  usage(): Promise<InstanceUsage | null>;
  /**
   * Resolves with the CPU time of its main process in nanoseconds: it stands still while the process is stopped or
   * blocked. Null once it ended.
   */
  workedNs(): Promise<number | null>;
  /** Sends SIGTERM, then SIGKILL after the grace period; resolves when nothing of it is left. */
  stop(graceMs: number): Promise<void>;
}

/** The slot of a container on its node: a directory of models, and one process at a time that serves them. */
export interface ContainerSlot {
  /** The unpacked models of a container that has many; null for others. */
  readonly trees: UnpackedModels | null;
  /**
   * Returns the container that a previous run of the platform started here, where it still runs with the same spec. Otherwise ends it and
   * returns null. Call once, before `prepare`.
   */
  adopt(signal: AbortSignal): Promise<HostedContainer | null>;
  /**
   * Prepares the directory that the container needs, and removes what an earlier attempt left. A multi-model container keeps the models that a
   * previous run of the platform unpacked from the same prefix. Rejects with ModelDataError when a model cannot be downloaded.
   */
  prepare(signal: AbortSignal): Promise<void>;
  /** Resolves when the container's process runs; it may not be healthy yet. */
  start(signal: AbortSignal): Promise<HostedContainer>;
}

/**
 * An instance on its node. Its opener stops each container before it leaves or disposes of the instance; both may
 * follow a `prepare` that failed or was never called.
 */
export interface HostedInstance extends AsyncDisposable {
  /** In the order of the instance's `containers`. */
  readonly slots: readonly ContainerSlot[];
  /** Removes everything but unpacked models, which the platform's next run adopts. For shutdown. */
  shutDown(): Promise<void>;
}

/**
 * Runs instances: as processes here, as pods elsewhere. It owns what is local to a node (sockets, directories, disks,
 * downloads); hosting knows addresses, models by name, and the usage of an instance. Every implementation passes
 * `model-host.contract.ts`.
 */
export interface ModelHost extends InstanceAdoption, AsyncDisposable {
  /** True if it runs images beside the built-in containers. */
  readonly runsImages: boolean;
  /** Makes `stop` and disposal leave containers running, for the next run of the platform to adopt. */
  detach(): void;
  /** Opens an instance; creates nothing before `prepare`. */
  open(spec: InstanceSpec): HostedInstance;
}

/** The instances that a previous run of the platform has left. */
export interface InstanceAdoption {
  /**
   * Keeps the running instances of a previous run for these owners; ends and removes all others. Resolves with the ids of the kept instances.
   * Call once, before `open`.
   */
  resume(desired: readonly InstanceOwner[]): Promise<ReadonlySet<string>>;
  /** Returns the kept instance of an owner, for `open`; null where there is none. Each is returned once. */
  claim(owner: InstanceOwner): AdoptableInstance | null;
}

/** A failed download of a model's data; the message is SageMaker's sentence with the cause after it. */
export class ModelDataError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ModelDataError";
  }
}
