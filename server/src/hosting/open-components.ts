import type { Catalogue } from "./catalogue.ts";
import { ComponentMoves } from "./component-moves.ts";
import { Components } from "./components.ts";
import type { FleetParts } from "./endpoints/index.ts";
import type { Quotas } from "./quotas.ts";
import { SharedVariants, type SharedVariantsOptions } from "./shared-variants.ts";
import type { HostingStore } from "./store/index.ts";

/** Inference components, and the variants that they run on, over one store. */
export function openComponents(of: {
  readonly store: HostingStore;
  readonly quotas: Quotas;
  readonly catalogue: Catalogue;
  readonly parts: FleetParts;
  readonly retireMsMax: number;
  readonly holding: AbortSignal;
  readonly resize: SharedVariantsOptions["resize"];
}): { readonly components: Components; readonly variants: SharedVariants } {
  const { store, parts, retireMsMax, resize } = of;
  const { fleet } = parts;
  const variants = new SharedVariants({ store, host: fleet.host, resize });
  const moves = new ComponentMoves({ store, parts, variants, retireMsMax });
  return { variants, components: new Components({ ...of, moves, variants, fleet }) };
}
