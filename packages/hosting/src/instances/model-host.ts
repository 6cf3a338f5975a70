import type { ModelTrees } from "../model-cache/index.ts";
import type { BuiltInRuntime, ContainerDefinition, InstanceBudget } from "../definitions/index.ts";
import type { NodeId } from "../nodes/index.ts";

/** Where a container answers. */
export type InstanceAddress =
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

/** What an instance is for: by it the platform's next life finds the instance again. */
export interface InstanceOwner {
  readonly endpointName: string;
  /** The fleet among those of its endpoint: of one variant in one generation, or of one inference component. */
  readonly fleetKey: string;
  /** Its number among the instances of its fleet. */
  readonly seat: number;
}

/** What an instance's models are and where they come from. */
export type ContainerModels =
  /** Brought as a whole before the container starts, within a time. */
  | { readonly kind: "one"; readonly container: ContainerDefinition; readonly bringMsMax: number }
  /** Brought one by one while it runs, from below a prefix. */
  | { readonly kind: "many"; readonly modelDataUrl: string };

/** One container of an instance: it answers the contract (`/ping`, `/invocations`, `/models`). */
export interface ContainerSpec {
  /** Whose container it is, for lists of processes. */
  readonly title: string;
  readonly runtime: BuiltInRuntime;
  readonly models: ContainerModels;
  /** Variables of the model's definition and of the platform; nothing of the platform's own environment is added but PATH and the like. */
  readonly environment: Readonly<Record<string, string>>;
  /** Memory for models: what the container counts its loads against. */
  readonly modelMemoryBytes: number;
  /** The most requests at once, where its variant limits them; null where it does not. */
  readonly concurrencyMax: number | null;
  /** Receives the lines the container prints; must not throw. */
  readonly output: (line: string) => void;
}

/** One instance of a variant: containers that run beside each other on one node and share what it may use. */
export interface InstanceSpec {
  /** Of letters, digits and dashes. */
  readonly instanceId: string;
  readonly node: NodeId;
  /** Null for one that no later life of the platform takes over. */
  readonly owner: InstanceOwner | null;
  /** What all containers may use together. */
  readonly budget: InstanceBudget;
  readonly containers: readonly [ContainerSpec, ...ContainerSpec[]];
}

export interface InstanceUsage {
  /** Processor time since the start, of all its processes. */
  readonly cpuNs: number;
  /** Proportional share of memory of all its processes. */
  readonly memoryBytes: number;
  /** How full the disk is that its models lie on, from 0 to 1. */
  readonly diskShare: number;
  /** Of the node's GPUs, 1 for each whole one; null where there is none, or none that tells. */
  readonly gpus: GpuUse | null;
}

export interface GpuUse {
  /** The share of time in which GPUs that one of its processes is on compute, for whomever. */
  readonly busy: number;
  /** The share of GPUs' memory that its own processes hold. */
  readonly memory: number;
}

/** Exit code and signal are both null where an earlier life of the platform started the container: its end alone is seen. */
export interface ContainerEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** Whether the node's kernel killed a process for lack of memory shortly before. */
  readonly isOutOfMemory: boolean;
  /** The last lines it printed, oldest first. */
  readonly lastLines: readonly string[];
}

/** A container that runs. */
export interface HostedContainer {
  readonly address: InstanceAddress;
  /** Resolves when the container's main process has been reaped; never rejects. */
  readonly ended: Promise<ContainerEnd>;
  /** The last lines printed so far. */
  lastLines(): readonly string[];
  /** Null once it ended. */
  usage(): Promise<InstanceUsage | null>;
  /** Processor time that its main process has had so far: it stands still while the process is stopped or blocked. Null once it ended. */
  workedNs(): Promise<number | null>;
  /** SIGTERM, then SIGKILL after the grace; resolves when nothing of it is left. */
  stop(graceMs: number): Promise<void>;
}

/** What a container of an instance has on its node: a place for its models, and one process after another. */
export interface ContainerPlace {
  /** The unpacked models of a container that has many; null for others. */
  readonly trees: ModelTrees | null;
  /**
   * The container that an earlier life of the platform started here with the same spec, where it still runs; null otherwise, and then
   * nothing of it runs. To be asked once, before `prepare`.
   */
  adopt(signal: AbortSignal): Promise<HostedContainer | null>;
  /**
   * Puts in place what the container needs, over whatever an earlier attempt has left; with many models what an earlier life of the
   * platform has unpacked of the same. Rejects with ModelDataError where a model cannot be brought.
   */
  prepare(signal: AbortSignal): Promise<void>;
  /** Resolves when the container runs, not when it is healthy. Ends what an earlier life of this host left of the same container. */
  start(signal: AbortSignal): Promise<HostedContainer>;
}

/**
 * An instance on the node it runs on. Its opener stops each container before it leaves or disposes of the instance; both may follow a
 * `prepare` that failed or was never called.
 */
export interface HostedInstance extends AsyncDisposable {
  /** In the order of the instance's `containers`. */
  readonly places: readonly ContainerPlace[];
  /** For the platform's end: unpacked models stay for its next life, everything else goes. */
  leave(): Promise<void>;
}

/**
 * Runs instances somewhere: processes here, pods elsewhere. What is local to a node (sockets, directories, disks, downloads) is its own;
 * hosting knows addresses, models by name, and how much an instance uses. Every implementation passes `model-host.contract.ts`.
 */
export interface ModelHost extends AsyncDisposable {
  /**
   * Keeps the instances that earlier lives have left for these owners, and ends and removes all others. Gives the ids of those that are kept.
   * To be called once, before `open`.
   */
  resume(wanted: readonly InstanceOwner[]): Promise<ReadonlySet<string>>;
  /** The id of the instance that an earlier life has left for an owner, to be opened again; null where there is none. Each is given once. */
  claim(owner: InstanceOwner): string | null;
  /** From now on containers that are stopped go on alone, until the platform's next life adopts them; so do those that still run at disposal. */
  detach(): void;
  /** Nothing is made before `prepare`. */
  open(spec: InstanceSpec): HostedInstance;
}

/** A model's data could not be brought; the message is SageMaker's sentence with the cause after it. */
export class ModelDataError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ModelDataError";
  }
}
