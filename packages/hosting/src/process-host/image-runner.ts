import type { InstanceBudget } from "../definitions/index.ts";
import type { ContainerSpec, HostedContainer } from "../instances/index.ts";

/** The slot of a container whose program is an image. */
export interface ImageSlot {
  /** Unique among the slots of the host; letters, digits and dashes. */
  readonly id: string;
  readonly instanceId: string;
  readonly image: string;
  readonly spec: ContainerSpec;
  /** Digest of everything that the container is started with. */
  readonly specDigest: string;
  /** The resources that the containers of the instance share. */
  readonly budget: InstanceBudget;
  /** The directory that stands for /opt/ml. The container only reads it. */
  readonly mlRoot: string;
  /** An existing directory for files about the container. */
  readonly directory: string;
  /** Returns whether `stop` leaves the container running for the next run of the platform. */
  readonly isDetached: () => boolean;
}

/** Runs containers of images, which outlive the platform. The methods are those of `ModelHost` and `ContainerSlot`, for images. */
export interface ImageRunner {
  /** Ends and removes the containers of a previous run that belong to other instances. Call once, before `adopt`. */
  keepOnly(instanceIds: ReadonlySet<string>): Promise<void>;
  adopt(slot: ImageSlot, signal: AbortSignal): Promise<HostedContainer | null>;
  /** Brings the image to this machine, if it is not here. Rejects with the reason when it cannot be brought. */
  pull(image: string, signal: AbortSignal): Promise<void>;
  start(slot: ImageSlot, signal: AbortSignal): Promise<HostedContainer>;
}
