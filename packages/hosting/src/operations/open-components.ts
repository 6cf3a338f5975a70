import type { HostingCatalog } from "./catalog.ts";
import { ComponentActions, Reconciler, type ReconcilerOptions } from "../reconcilers/index.ts";
import { Components } from "./component-operations.ts";
import type { Owner } from "../definitions/index.ts";
import type { WaitLimits } from "../waits/index.ts";
import type { ReadAlarmState } from "../reconcilers/index.ts";
import type { EndpointWatch } from "./endpoint-watch.ts";
import type { VariantSizeChange } from "./endpoint-updates.ts";
import type { FleetDependencies } from "../endpoints/index.ts";
import type { Reservations } from "../capacity/index.ts";
import type { DrainLimiter } from "../capacity/index.ts";
import { SharedVariants } from "../reconcilers/index.ts";
import type { HostingStore } from "../store/index.ts";

/**
 * Maximum milliseconds to wait for a resize of shared instances. A resize needs only one write, because no process has to
 * start.
 */
const stableMsMax = 60_000;

/** Opens the operations on inference components, with their reconciler and the variants that they share. */
export function openComponents(options: {
  readonly store: HostingStore;
  readonly reservations: Reservations;
  readonly catalog: HostingCatalog;
  readonly reconciling: ReconcilerOptions;
  readonly fleetDependencies: FleetDependencies;
  readonly drainLimiter: DrainLimiter;
  readonly alarmState: ReadAlarmState;
  readonly watch: EndpointWatch;
  readonly waitUntilStable: (endpointName: string, wait: WaitLimits) => Promise<void>;
  readonly resize: (endpointName: string, size: VariantSizeChange, owner: Owner) => Promise<unknown>;
}): { readonly components: Components; readonly variants: SharedVariants } {
  const { store, fleetDependencies, drainLimiter, alarmState } = options;
  const { fleet } = fleetDependencies;
  const variants = new SharedVariants({
    store,
    nodes: fleet.nodes,
    // An endpoint can be resized only in a stable state, so a transition in progress is awaited first.
    resize: async ({ endpointName, variantName, owner }, instanceCount, signal) => {
      const wait = { waitMsMax: stableMsMax, signal };
      await options.waitUntilStable(endpointName, wait);
      await options.resize(endpointName, { variantName, instanceCount }, owner);
      await options.waitUntilStable(endpointName, wait);
    },
  });
  const { reservations } = options;
  const actions = new ComponentActions({
    store,
    parts: options.fleetDependencies,
    variants,
    alarmState,
    drainLimiter,
    reservations,
  });
  const reconciler = new Reconciler(actions, options.reconciling);
  return { variants, components: new Components({ ...options, reconciler, actions, variants, fleet }) };
}
