import type { UnpackedModels } from "../model-cache/index.ts";
import type { ContainerDefinition, ContainerRuntime, InstanceBudget } from "../definitions/index.ts";
import type { NodeId } from "../nodes/index.ts";

/** The address of a container. */
export type InstanceAddress =
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

/** The purpose of an instance. The next run of the platform finds the instance by it. */
export interface InstanceOwner {
  readonly endpointName: string;
  /**
   * Key of the instance's fleet, unique within the endpoint. A fleet belongs to a variant of one generation or to an
   * inference component.
   */
  readonly fleetKey: string;
  /** The ordinal of the instance in its fleet. */
  readonly ordinal: number;
}

/** Returns a text that is unique for each owner. */
export const ownerKey = ({ endpointName, fleetKey, ordinal }: InstanceOwner): string =>
  JSON.stringify([endpointName, fleetKey, ordinal]);

/** An instance of a previous run of the platform. */
export interface AdoptableInstance {
  readonly id: string;
  /** The node that runs the instance. */
  readonly node: NodeId;
}

/** The source of a container's models. */
export type ContainerModels =
  /** One model, which is downloaded before the container starts, within a time limit. */
  | { readonly kind: "one"; readonly container: ContainerDefinition; readonly bringMsMax: number }
  /** Models below a prefix, which are downloaded on demand while the container runs. */
  | { readonly kind: "many"; readonly modelDataUrl: string };

/** One container of an instance. It implements SageMaker's container contract (`/ping`, `/invocations`, `/models`). */
export interface ContainerSpec {
  /** Title in process lists. */
  readonly title: string;
  readonly runtime: ContainerRuntime;
  readonly models: ContainerModels;
  /**
   * Variables of the model's definition and of the platform. From the platform's own environment, the host adds only
   * PATH and similar variables.
   */
  readonly environment: Readonly<Record<string, string>>;
  /** Maximum bytes of memory for models in this container. */
  readonly modelMemoryBytes: number;
  /** Maximum number of concurrent requests to the container's variant; null for no limit. */
  readonly concurrencyMax: number | null;
  /** Receives the lines that the container prints. Must not throw. */
  readonly output: (line: string) => void;
}

/** One instance of a variant: containers on one node that share its budget. */
export interface InstanceSpec {
  /** Contains only letters, digits and dashes. */
  readonly instanceId: string;
  readonly node: NodeId;
  /** Null for an instance that a later run of the platform stops instead of adopting. */
  readonly owner: InstanceOwner | null;
  /** The resources that all containers share. */
  readonly budget: InstanceBudget;
  readonly containers: readonly [ContainerSpec, ...ContainerSpec[]];
}

export interface InstanceUsage {
  /** CPU time of all processes of the container since its start, in nanoseconds. */
  readonly cpuNs: number;
  /** Memory of all processes of the container (proportional set size), in bytes. */
  readonly memoryBytes: number;
  /** Used share, from 0 to 1, of the disk that contains the models. */
  readonly diskShare: number;
  /** GPU usage, in which each fully used GPU counts as 1. Null if there are no GPUs or they could not be read. */
  readonly gpus: GpuUsage | null;
}

export interface GpuUsage {
  /** Share of time in which the GPUs that the container uses are busy, including with work of other containers. */
  readonly busy: number;
  /** Share of the GPUs' memory that the container's own processes use. */
  readonly memory: number;
}

/** The end of a container. Exit code and signal are null if a previous run of the platform started the container. */
export interface ContainerEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** True if the node's kernel killed a process for lack of memory shortly before the end. */
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
  /** Resolves with the resource usage; null after the container has ended. */
  usage(): Promise<InstanceUsage | null>;
  /**
   * Resolves with the CPU time of the container's main process in nanoseconds; null after the container has ended. The
   * time does not increase while the process is stopped or blocked.
   */
  workedNs(): Promise<number | null>;
  /** Sends SIGTERM, then SIGKILL after the grace period. Resolves when all processes of the container have ended. */
  stop(graceMs: number): Promise<void>;
}

/** The slot of a container on its node: a directory of models, and at most one running container that serves them. */
export interface ContainerSlot {
  /** The unpacked models of a multi-model container; null for a container with one model. */
  readonly trees: UnpackedModels | null;
  /**
   * Returns the container that a previous run of the platform started in this slot, if it still runs with the same
   * spec. Otherwise, ends that container and returns null. Call this once, before `prepare`.
   */
  adopt(signal: AbortSignal): Promise<HostedContainer | null>;
  /**
   * Prepares the directory that the container needs, and removes files of earlier attempts. A multi-model container
   * keeps the models that a previous run of the platform unpacked from the same prefix. Rejects with ModelDataError if
   * a model cannot be downloaded.
   */
  prepare(signal: AbortSignal): Promise<void>;
  /** Starts the container. Resolves when its process runs, which may be before the container is healthy. */
  start(signal: AbortSignal): Promise<HostedContainer>;
}

/**
 * An instance on its node. The caller must stop all containers before it calls `shutDown` or disposes the instance.
 * Both are allowed if `prepare` failed or was not called.
 */
export interface HostedInstance extends AsyncDisposable {
  /** Slots of the containers, in the order of `InstanceSpec.containers`. */
  readonly slots: readonly ContainerSlot[];
  /** Ends the instance for a shutdown of the platform. Keeps only unpacked models, which the next run adopts. */
  shutDown(): Promise<void>;
}

/**
 * Runs instances, for example as processes of this machine or as pods. A host owns everything that is local to a node:
 * sockets, directories, disks and downloads. Its callers use only addresses, names of models, and the usage of
 * instances. Every implementation must pass `model-host.contract.ts`.
 */
export interface ModelHost extends InstanceAdoption, AsyncDisposable {
  /** True if the host can run images in addition to the built-in containers. */
  readonly runsImages: boolean;
  /**
   * Detaches the host from its containers: `stop` and disposal then leave them running, and the next run of the
   * platform adopts them.
   */
  detach(): void;
  /** Opens an instance. Nothing is created on the node before `prepare`. */
  open(spec: InstanceSpec): HostedInstance;
}

/** Adopts the instances that a previous run of the platform left running. */
export interface InstanceAdoption {
  /**
   * Keeps the running instances of a previous run for these owners, and stops and removes all others. Resolves with the
   * ids of the kept instances. Call this once, before `open`.
   */
  resume(desired: readonly InstanceOwner[]): Promise<ReadonlySet<string>>;
  /** Returns the kept instance of an owner; null if there is none. Each instance is returned at most once. */
  claim(owner: InstanceOwner): AdoptableInstance | null;
}

/** The error of a failed download of model data. The message is SageMaker's sentence, followed by the cause. */
export class ModelDataError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ModelDataError";
  }
}
