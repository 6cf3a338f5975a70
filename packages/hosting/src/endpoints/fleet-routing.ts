import { AwsError } from "@galatea/base";
import type { Route } from "./endpoint-record.ts";
import type { VariantFleet } from "./variant-fleet.ts";
import { WeightedRotation } from "./weighted-rotation.ts";

type RoutableFleet = Pick<VariantFleet, "variantName" | "inServiceCount" | "canServe">;

/** A row of the routing table with the fleet that serves it. */
export interface FleetRoute<Fleet> extends Route {
  readonly fleet: Fleet;
}

/** The fleet for a request, and the number of the variant's instances in service in all fleets. */
export interface ChosenFleet<Fleet> {
  readonly fleet: Fleet;
  readonly peerCount: number;
}

/** Divides the requests of an endpoint among the fleets of its variants. */
export class FleetRouting<Fleet extends RoutableFleet> {
  readonly #endpointName: string;
  #routes: readonly FleetRoute<Fleet>[] = [];
  #rotation = new WeightedRotation<FleetRoute<Fleet>>([]);
  #named = new Map<string, WeightedRotation<{ readonly weight: number; readonly fleet: Fleet }>>();

  constructor(endpointName: string) {
    this.#endpointName = endpointName;
  }

  get routes(): readonly FleetRoute<Fleet>[] {
    return this.#routes;
  }

  /** Number of instances in service to which requests are routed. */
  get inServiceCount(): number {
    return this.#routes.reduce((sum, { fleet }) => sum + fleet.inServiceCount, 0);
  }

  setRoutes(routes: readonly FleetRoute<Fleet>[]): void {
    // Unchanged rotations are kept, because a new rotation starts without credits and would distribute requests unevenly.
    if (isSameRouting(routes, this.#routes)) return;
    this.#routes = routes;
    this.#rotation = new WeightedRotation(routes);
    const byVariant = Map.groupBy(this.#routes, ({ variantName }) => variantName);
    this.#named = new Map(
      [...byVariant].map(([name, routes]) => {
        const shares = routes.map(({ trafficShare, fleet }) => ({ weight: trafficShare, fleet }));
        return [name, new WeightedRotation(shares)];
      }),
    );
  }

  /** Returns the fleet for a request that names a variant, or none. Throws AwsError if there is no such variant. */
  choose(targetVariant: string | null): ChosenFleet<Fleet> {
    const chosen = this.#next(targetVariant);
    const { variantName } = chosen;
    let peerCount = 0;
    let instead: Fleet | null = null;
    for (const { fleet } of this.#routes) {
      if (fleet.variantName !== variantName) continue;
      peerCount += fleet.inServiceCount;
      if (fleet.canServe) instead ??= fleet;
    }
    // During an update, a variant has two fleets, and both can serve requests that name the variant.
    return { fleet: chosen.canServe ? chosen : (instead ?? chosen), peerCount };
  }

  #next(targetVariant: string | null): Fleet {
    if (targetVariant !== null) {
      const named = this.#named.get(targetVariant)?.next();
      if (named !== undefined && named !== null) return named.fleet;
      const text = `Variant ${targetVariant} not found for Request of endpoint ${this.#endpointName}.`;
      throw new AwsError("ValidationError", text);
    }
    const chosen = this.#rotation.next();
    if (chosen === null) {
      throw new AwsError("ValidationError", `Every variant of endpoint ${this.#endpointName} has weight zero.`);
    }
    return chosen.fleet;
  }
}

function isSameRouting(one: readonly FleetRoute<unknown>[], other: readonly FleetRoute<unknown>[]): boolean {
  return (
    one.length === other.length &&
    one.every(({ fleet, weight, trafficShare }, index) => {
      const each = other[index];
      return each !== undefined && each.fleet === fleet && each.weight === weight && each.trafficShare === trafficShare;
    })
  );
}
