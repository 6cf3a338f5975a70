import type { ByteBudget } from "@galatea/base";
import type { HostingOptions } from "@galatea/hosting";
import type { InstanceKeys } from "@galatea/hosting/instance-keys";
import type { NodeDescription } from "@galatea/hosting/nodes";
import type { BucketStore } from "@galatea/hosting/objects";
import { describeMachine, openInstanceHost, type InstanceHostOptions } from "./instance-host.ts";
import { openPods, type PodsOptions } from "./pods.ts";

/** The location at which the platform runs instances: as processes of this machine, or in the pods of a cluster. */
export interface PlatformInstances {
  readonly node: NodeDescription;
  /** The URL at which instances reach the platform; null: the URL of the platform's port. */
  readonly platformUrl: string | null;
  /** Opens the host. `keys` issues the keys of agents. */
  openHost(keys: InstanceKeys): Promise<HostingOptions["fleet"]["host"]>;
  /** Leaves instances running when this process ends. Pods always continue to run. */
  detach(): void;
}

export interface PlatformInstancesOptions
  extends
    Omit<InstanceHostOptions, "connectPort" | "containerEngine" | "requestBytesMax" | "store">,
    Omit<PodsOptions, "pods"> {
  /** The path given by `--pods`; null: instances are processes of this machine. */
  readonly pods: string | null;
  /** The address of the engine that runs users' images; null: users' images are not supported. */
  readonly containerEngine: string | null;
  /** The network that containers of users' images join; null: a network that the platform creates. */
  readonly containerNetwork: string | null;
  /** The owner's keys, which allow everything; null: requests are not authenticated. */
  readonly keys: readonly object[] | null;
  readonly requestMemory: ByteBudget;
  readonly store: BucketStore;
  /** Returns the URL of the platform's port. */
  readonly callUrl: () => string;
}

/** Opens the host of instances. Calls `callUrl` only after the platform's port is open. */
export async function openPlatformInstances(
  opening: AsyncDisposableStack,
  options: PlatformInstancesOptions,
): Promise<PlatformInstances> {
  if (options.pods !== null) {
    const pods = await openPods({ ...options, pods: options.pods });
    return { ...pods, openHost: async (keys) => opening.use(await pods.openHost(keys)), detach: () => {} };
  }
  const host = await openInstanceHost(opening, {
    ...options,
    // With authentication, model code may connect to the platform's port, because its own keys limit it. Without
    // authentication, the port would allow it everything.
    connectPort: () => (options.keys === null ? null : Number(new URL(options.callUrl()).port || 80)),
    containerEngine:
      options.containerEngine === null ? null : { address: options.containerEngine, network: options.containerNetwork },
    requestBytesMax: options.requestMemory.bytesMax,
  });
  return {
    node: await describeMachine(options),
    platformUrl: null,
    openHost: () => Promise.resolve(host),
    detach: () => host.detach(),
  };
}
