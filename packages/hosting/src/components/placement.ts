/** What each copy of a component takes of the instance that it is on. */
export interface ComponentClaim {
  readonly cpuCores: number;
  readonly acceleratorCount: number;
  readonly memoryBytes: number;
}

export const noClaim: ComponentClaim = { cpuCores: 0, acceleratorCount: 0, memoryBytes: 0 };

/** An instance that components share: what it has, and what of it is taken. */
export interface SharedInstance {
  readonly has: ComponentClaim;
  readonly taken: ComponentClaim;
  /** Copies of the component that is being placed. */
  readonly ownCount: number;
}

export type PlacementStrategy = "SPREAD" | "BINPACK";

export function claimSum(one: ComponentClaim, other: ComponentClaim): ComponentClaim {
  return {
    cpuCores: one.cpuCores + other.cpuCores,
    acceleratorCount: one.acceleratorCount + other.acceleratorCount,
    memoryBytes: one.memoryBytes + other.memoryBytes,
  };
}

/** Whether an instance has room for one more. Cores come in quarters, so sums of them are exact. */
export function fits({ has, taken }: Pick<SharedInstance, "has" | "taken">, claim: ComponentClaim): boolean {
  const sum = claimSum(taken, claim);
  return (
    sum.cpuCores <= has.cpuCores && sum.acceleratorCount <= has.acceleratorCount && sum.memoryBytes <= has.memoryBytes
  );
}

/**
 * The instances, by their positions, that so many more copies go to: as many of them as there is room for. To spread is to go where the
 * component has fewest copies, and of such instances to the one with most memory left; to pack is to go to the fullest. Nothing that is placed moves.
 */
export function placeCopies(
  instances: readonly SharedInstance[],
  {
    claim,
    copyCount,
    strategy,
  }: { readonly claim: ComponentClaim; readonly copyCount: number; readonly strategy: PlacementStrategy },
): readonly number[] {
  const states = [...instances];
  const placed: number[] = [];
  while (placed.length < copyCount) {
    let best: number | null = null;
    for (const [index, state] of states.entries()) {
      if (!fits(state, claim)) continue;
      const before = best === null ? undefined : states[best];
      if (before === undefined || isBetter(state, before, strategy)) best = index;
    }
    const chosen = best === null ? undefined : states[best];
    if (best === null || chosen === undefined) return placed;
    states[best] = { ...chosen, taken: claimSum(chosen.taken, claim), ownCount: chosen.ownCount + 1 };
    placed.push(best);
  }
  return placed;
}

/** Of equals the first stays. */
function isBetter(one: SharedInstance, other: SharedInstance, strategy: PlacementStrategy): boolean {
  const left = (instance: SharedInstance) => instance.has.memoryBytes - instance.taken.memoryBytes;
  if (strategy === "BINPACK") return left(one) < left(other);
  return one.ownCount < other.ownCount || (one.ownCount === other.ownCount && left(one) > left(other));
}

/** Which of its copies, by their positions, a component has least use for: those where it has most, from the last one on. */
export function surplusCopies(instanceOf: readonly number[], surplusCount: number): ReadonlySet<number> {
  const counts = new Map<number, number>();
  for (const instance of instanceOf) counts.set(instance, (counts.get(instance) ?? 0) + 1);
  const surplus = new Set<number>();
  while (surplus.size < Math.min(surplusCount, instanceOf.length)) {
    let worst = -1;
    for (const [position, instance] of instanceOf.entries()) {
      if (surplus.has(position)) continue;
      const worstInstance = worst === -1 ? undefined : instanceOf[worst];
      const most = worstInstance === undefined ? 0 : (counts.get(worstInstance) ?? 0);
      if ((counts.get(instance) ?? 0) >= most) worst = position;
    }
    const instance = instanceOf[worst];
    if (instance === undefined) break;
    surplus.add(worst);
    counts.set(instance, (counts.get(instance) ?? 0) - 1);
  }
  return surplus;
}
