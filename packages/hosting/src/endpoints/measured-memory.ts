import type { VariantPlan } from "../definitions/index.ts";
import type { InstanceUsage } from "../instances/index.ts";
import { containerOwnBytes, plannedContainers } from "./planned-containers.ts";
import type { InstanceBudget } from "../definitions/index.ts";

/**
 * What a container of each instance is reserved of its node, by its name. Not of one with many models: what these take is shared out
 * as they are loaded. `claimBytes`: of an instance with one container that says itself how much it is to have, or null.
 */
export function reservedBytesOf(
  plan: VariantPlan,
  budget: InstanceBudget,
  claimBytes: number | null,
): ReadonlyMap<string, number> {
  const single = plannedContainers(plan, budget).filter(({ definition }) => definition.Mode !== "MultiModel");
  return new Map(
    single.map(({ name, guaranteedBytes }) => [name, containerOwnBytes + (claimBytes ?? guaranteedBytes)]),
  );
}

/** How much of what containers take is more than they are reserved. */
export function beyondReserved(reserved: ReadonlyMap<string, number>, used: ReadonlyMap<string, number>): number {
  let bytes = 0;
  for (const [name, reservedBytes] of reserved) bytes += Math.max(0, (used.get(name) ?? 0) - reservedBytes);
  return bytes;
}

/** The most memory that a container of each kind was ever seen to take, over the instances of a fleet. */
export class MeasuredMemory {
  readonly #most = new Map<string, number>();

  /** In the order of the containers, without those that have many models; zero for one that was never seen. */
  get mostBytes(): ReadonlyMap<string, number> {
    return this.#most;
  }

  /** Returns how much an instance's containers take in addition to what they are `reserved`. Containers that do not run take nothing. */
  seen(
    reserved: ReadonlyMap<string, number>,
    usages: readonly (readonly [name: string, usage: InstanceUsage | null])[],
  ): number {
    const used = new Map<string, number>();
    for (const [name, usage] of usages) {
      if (usage === null || !reserved.has(name)) continue;
      used.set(name, usage.memoryBytes);
      this.#most.set(name, Math.max(this.#most.get(name) ?? 0, usage.memoryBytes));
    }
    return beyondReserved(reserved, used);
  }
}
