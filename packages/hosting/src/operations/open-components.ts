import type { HostingCatalog } from "./catalog.ts";
import { ComponentActions, Reconciler, type ReconcilerOptions } from "../reconcilers/index.ts";
import { Components } from "./component-operations.ts";
import type { Owner } from "../definitions/index.ts";
import type { Wait } from "../waits/index.ts";
import type { ReadAlarmState } from "../reconcilers/index.ts";
import type { EndpointWatch } from "./endpoint-watch.ts";
import type { VariantSize } from "./endpoint-updates.ts";
import type { FleetDependencies } from "../endpoints/index.ts";
import type { Reservations } from "../capacity/index.ts";
import type { DrainLimiter } from "../capacity/index.ts";
import { SharedVariants } from "../reconcilers/index.ts";
import type { HostingStore } from "../store/index.ts";

/** Maximum wait for a resize: shared instances are claims, which exist after one write. */
const settledMsMax = 60_000;

/** Opens inference components and their variants over one store. */
export function openComponents(of: {
  readonly store: HostingStore;
  readonly reservations: Reservations;
  readonly catalog: HostingCatalog;
  readonly reconciling: ReconcilerOptions;
  readonly parts: FleetDependencies;
  readonly drainLimiter: DrainLimiter;
  readonly alarmState: ReadAlarmState;
  readonly watch: EndpointWatch;
  readonly settled: (endpointName: string, wait: Wait) => Promise<void>;
  readonly resize: (endpointName: string, size: VariantSize, owner: Owner) => Promise<unknown>;
}): { readonly components: Components; readonly variants: SharedVariants } {
  const { store, parts, drainLimiter, alarmState } = of;
  const { fleet } = parts;
  const variants = new SharedVariants({
    store,
    nodes: fleet.nodes,
    // Waits until no other transition of the endpoint is in progress.
    resize: async ({ endpointName, variantName, owner }, instanceCount, signal) => {
      const wait = { waitMsMax: settledMsMax, signal };
      await of.settled(endpointName, wait);
      await of.resize(endpointName, { variantName, instanceCount }, owner);
      await of.settled(endpointName, wait);
    },
  });
  const { reservations } = of;
  const actions = new ComponentActions({ store, parts, variants, alarmState, drainLimiter, reservations });
  const reconciler = new Reconciler(actions, of.reconciling);
  return { variants, components: new Components({ ...of, reconciler, actions, variants, fleet }) };
}
