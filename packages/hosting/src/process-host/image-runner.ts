import type { InstanceBudget } from "../definitions/index.ts";
import type { ContainerSpec, HostedContainer } from "../instances/index.ts";

/** The slot of a container that runs an image. */
export interface ImageSlot {
  /** An id that is unique on the host. It consists of letters, digits and dashes. */
  readonly id: string;
  readonly instanceId: string;
  readonly image: string;
  readonly spec: ContainerSpec;
  /** Digest of all inputs of the container's start, to detect containers that differ from the current spec. */
  readonly specDigest: string;
  /** The resources that the containers of the instance share. */
  readonly budget: InstanceBudget;
  /** The directory that is mounted read-only at /opt/ml. */
  readonly mlRoot: string;
  /** An existing directory for files about the container. */
  readonly directory: string;
  /** Returns true if `stop` keeps the container running for the next run of the platform. */
  readonly isDetached: () => boolean;
}

/**
 * Runs containers of images. The containers keep running if the platform ends. The methods correspond to those of `ModelHost` and
 * `ContainerSlot`.
 */
export interface ImageRunner {
  /** Stops and removes containers of the previous run, except those of the given instances. Call it once, before `adopt`. */
  keepOnly(instanceIds: ReadonlySet<string>): Promise<void>;
  adopt(slot: ImageSlot, signal: AbortSignal): Promise<HostedContainer | null>;
  /** Pulls the image if it is not on this machine. Rejects with the reason if the pull fails. */
  pull(image: string, signal: AbortSignal): Promise<void>;
  start(slot: ImageSlot, signal: AbortSignal): Promise<HostedContainer>;
}
