import type { VariantPlan } from "../definitions/index.ts";
import type { InstanceUsage } from "../instances/index.ts";
import { containerOwnBytes, plannedContainers } from "./planned-containers.ts";
import type { InstanceBudget } from "../definitions/index.ts";

/**
 * What a container of each instance is reserved of the machine, by its name. Not of one with many models: what these take is shared out
 * as they are loaded. `claimBytes`: of an instance with one container that says itself how much it is to have, or null.
 */
export function reservedBytesOf(
  plan: VariantPlan,
  budget: InstanceBudget,
  claimBytes: number | null,
): ReadonlyMap<string, number> {
  const single = plannedContainers(plan, budget).filter(({ definition }) => definition.Mode !== "MultiModel");
  return new Map(single.map(({ name, promisedBytes }) => [name, containerOwnBytes + (claimBytes ?? promisedBytes)]));
}

/** How much of what containers take is more than they are reserved. */
export function beyondReserved(reserved: ReadonlyMap<string, number>, used: ReadonlyMap<string, number>): number {
  let bytes = 0;
  for (const [name, reservedBytes] of reserved) bytes += Math.max(0, (used.get(name) ?? 0) - reservedBytes);
  return bytes;
}

/** What the instances of a fleet were last seen to take of the machine's memory, and the most that a container of each kind ever took. */
export class MeasuredMemory {
  readonly #reserved: ReadonlyMap<string, number>;
  /** By the instance's id. */
  readonly #used = new Map<string, ReadonlyMap<string, number>>();
  readonly #most = new Map<string, number>();

  constructor(reserved: ReadonlyMap<string, number>) {
    this.#reserved = reserved;
  }

  /** In the order of the containers, without those that have many models; zero for one that was never seen. */
  get mostBytes(): ReadonlyMap<string, number> {
    return this.#most;
  }

  /** Of all instances together, beyond what they are reserved. */
  get beyondBytes(): number {
    let bytes = 0;
    for (const used of this.#used.values()) bytes += beyondReserved(this.#reserved, used);
    return bytes;
  }

  /** What is known of instances that are none of these is forgotten. */
  keep(instanceIds: ReadonlySet<string>): void {
    for (const id of this.#used.keys()) if (!instanceIds.has(id)) this.#used.delete(id);
  }

  /** Containers that do not run take nothing. */
  seen(instanceId: string, usages: readonly (readonly [name: string, usage: InstanceUsage | null])[]): void {
    const used = new Map<string, number>();
    for (const [name, usage] of usages) {
      if (usage === null || !this.#reserved.has(name)) continue;
      used.set(name, usage.memoryBytes);
      this.#most.set(name, Math.max(this.#most.get(name) ?? 0, usage.memoryBytes));
    }
    this.#used.set(instanceId, used);
  }
}
