import type { ByteBudget } from "@galatea/base";
import type { HostingOptions } from "@galatea/hosting";
import type { InstanceKeys } from "@galatea/hosting/instance-keys";
import type { NodeDescription } from "@galatea/hosting/nodes";
import type { BucketStore } from "@galatea/hosting/objects";
import { describeMachine, openInstanceHost, type InstanceHostOptions } from "./instance-host.ts";
import { openPods, type PodsOptions } from "./pods.ts";

/** The place where the platform runs instances: this machine, whose processes they are, or a cluster, in pods. */
export interface PlatformInstances {
  readonly node: NodeDescription;
  /** The URL at which instances reach the platform; null for that of its port. */
  readonly platformUrl: string | null;
  /** `keys`: issue the keys of agents. */
  openHost(keys: InstanceKeys): Promise<HostingOptions["fleet"]["host"]>;
  /** Makes the end of this process leave instances running. Pods do so always. */
  detach(): void;
}

export interface PlatformInstancesOptions
  extends
    Omit<InstanceHostOptions, "connectPort" | "containerEngine" | "requestBytesMax" | "store">,
    Omit<PodsOptions, "pods"> {
  /** The path of the file of `--pods`; null: instances are processes of this machine. */
  readonly pods: string | null;
  /** The address of the engine that runs users' images; null for none. */
  readonly containerEngine: string | null;
  /** The network of the engine that their containers join; null for one of the platform's own. */
  readonly containerNetwork: string | null;
  /** Keys that allow everything; null: no authentication. */
  readonly keys: readonly object[] | null;
  readonly requestMemory: ByteBudget;
  readonly store: BucketStore;
  /** Returns the URL of the platform's port. */
  readonly callUrl: () => string;
}

/** `callUrl` is called after the platform's port is open. */
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
    // With authentication model code may connect to the port, because its own keys limit it; without, the port would
    // accept anything.
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
