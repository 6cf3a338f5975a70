import type { VariantPlan } from "../definitions/index.ts";
import type { InstanceUsage } from "../instances/index.ts";
import { containerOwnBytes, plannedContainers } from "./planned-containers.ts";
import type { InstanceBudget } from "../definitions/index.ts";

/**
 * Returns the bytes that each container of an instance reserves of its node, by name. Multi-model containers are
 * excluded: their memory is accounted as models are loaded. `claimBytes`: the claim of an instance with one container,
 * or null.
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

/** Returns the bytes that containers use above their reservations. */
export function bytesOverReservation(reserved: ReadonlyMap<string, number>, used: ReadonlyMap<string, number>): number {
  let bytes = 0;
  for (const [name, reservedBytes] of reserved) bytes += Math.max(0, (used.get(name) ?? 0) - reservedBytes);
  return bytes;
}

/** The maximum memory that was measured for each container, over all instances of a fleet. */
export class MeasuredMemory {
  readonly #most = new Map<string, number>();

  /** Bytes in the order of the containers, without multi-model ones; zero for those never measured. */
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
    return bytesOverReservation(reserved, used);
  }
}
