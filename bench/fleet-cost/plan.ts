import type { InstancePrice } from "./instance-prices.ts";

export const hoursPerMonth = 730;
/** Share of an instance's memory for servers and models; the rest is for the operating system. */
export const memoryShareMax = 0.9;
/** Mean share of an instance's sustained vCPUs that the load may take; the rest is for peaks. */
export const cpuShareMax = 0.5;

/** The resources that a server needs. */
export interface Need {
  readonly memoryBytes: number;
  /** Mean number of vCPUs in use. */
  readonly vcpus: number;
}

/** Instances of one type, and their price. */
export interface Plan {
  readonly type: string;
  readonly count: number;
  readonly monthlyUsd: number;
}

/** Instances of one type that each hold several servers. */
export interface PackedPlan extends Plan {
  readonly perInstance: number;
}

/** Returns the resources of one instance that servers may use. */
export function usableOf({ memoryGib, sustainedVcpus }: InstancePrice): Need {
  return { memoryBytes: memoryGib * 2 ** 30 * memoryShareMax, vcpus: sustainedVcpus * cpuShareMax };
}

/** Returns the cheapest instance type that has the needed resources. Throws if there is none. */
export function cheapestFor(instances: readonly InstancePrice[], need: Need): InstancePrice {
  const [cheapest] = instances.filter((each) => timesOn(each, need) >= 1).toSorted((a, b) => a.hourlyUsd - b.hourlyUsd);
  if (cheapest === undefined)
    throw new RangeError(
      `no instance type of the price table has ${(need.memoryBytes / 1e9).toFixed(1)} GB and ${need.vcpus.toFixed(2)} vCPUs: add a larger one`,
    );
  return cheapest;
}

/** Returns one instance of the cheapest type for each of `count` equal servers. */
export function dedicatedPlan(instances: readonly InstancePrice[], each: Need, count: number): Plan {
  return priced(cheapestFor(instances, each), count);
}

/** Returns the instances of one type that together have the needed resources, at least `countMin`. */
export function sharedPlan(instance: InstancePrice, need: Need, countMin: number): Plan {
  const usable = usableOf(instance);
  const count = Math.max(
    countMin,
    Math.ceil(need.memoryBytes / usable.memoryBytes),
    Math.ceil(need.vcpus / usable.vcpus),
  );
  return priced(instance, count);
}

/**
 * Returns the cheapest instances for `count` equal servers, as many on each instance as fit. `base` is what an instance needs
 * in addition to its servers.
 */
export function packedPlan(
  instances: readonly InstancePrice[],
  each: Need,
  { count, base = { memoryBytes: 0, vcpus: 0 } }: { readonly count: number; readonly base?: Need },
): PackedPlan {
  const plans = instances.flatMap((instance) => {
    const perInstance = timesOn(instance, each, base);
    return perInstance < 1 ? [] : [{ ...priced(instance, Math.ceil(count / perInstance)), perInstance }];
  });
  return cheapestPlan(plans);
}

/** Returns the plan with the lowest price, of equal ones the one with the fewest instances; throws if there is none. */
export function cheapestPlan<Some extends Plan>(plans: readonly Some[]): Some {
  const [cheapest] = plans.toSorted((a, b) => a.monthlyUsd - b.monthlyUsd || a.count - b.count);
  if (cheapest === undefined) throw new RangeError("one server is larger than every instance of the price table");
  return cheapest;
}

function timesOn(instance: InstancePrice, each: Need, base: Need = { memoryBytes: 0, vcpus: 0 }): number {
  const usable = usableOf(instance);
  const times = (name: keyof Need) => (each[name] > 0 ? (usable[name] - base[name]) / each[name] : Infinity);
  return Math.floor(Math.min(times("memoryBytes"), times("vcpus")));
}

function priced({ type, hourlyUsd }: InstancePrice, count: number): Plan {
  return { type, count, monthlyUsd: count * hourlyUsd * hoursPerMonth };
}
