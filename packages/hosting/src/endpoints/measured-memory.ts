import type { VariantPlan } from "../definitions/index.ts";
import type { InstanceUsage } from "../instances/index.ts";
import { containerBaseBytes, planContainers } from "./planned-containers.ts";
import type { InstanceBudget } from "../definitions/index.ts";

/**
 * Returns the bytes of node memory that each container of an instance reserves, by container name. Multi-model
 * containers are excluded, because their memory is counted when models are loaded. `claimBytes` is the memory claim of
 * an inference component's copy; null for other instances.
 */
export function reservedBytesByContainer(
  plan: VariantPlan,
  budget: InstanceBudget,
  claimBytes: number | null,
): ReadonlyMap<string, number> {
  const single = planContainers(plan, budget).filter(({ definition }) => definition.Mode !== "MultiModel");
  return new Map(
    single.map(({ name, guaranteedBytes }) => [name, containerBaseBytes + (claimBytes ?? guaranteedBytes)]),
  );
}

/** Returns the sum of the bytes that containers use above their reservations. */
export function bytesOverReservation(reserved: ReadonlyMap<string, number>, used: ReadonlyMap<string, number>): number {
  let bytes = 0;
  for (const [name, reservedBytes] of reserved) bytes += Math.max(0, (used.get(name) ?? 0) - reservedBytes);
  return bytes;
}

/** The maximum memory that was measured for each container, over all instances of a fleet. */
export class MeasuredMemory {
  readonly #most = new Map<string, number>();

  /** Maximum measured bytes by container name, without multi-model containers; zero for containers never measured. */
  get mostBytes(): ReadonlyMap<string, number> {
    return this.#most;
  }

  /** Records a measurement of an instance's containers. Returns the bytes that they use above their reservations; a container that does not run uses none. */
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
