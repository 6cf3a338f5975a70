import type { NodeId } from "../nodes/index.ts";

/** The resources that each copy of a component requires of its instance. */
export interface ComponentClaim {
  readonly cpuCores: number;
  readonly acceleratorCount: number;
  readonly memoryBytes: number;
}

/** The claim of a component that requires no resources. */
export const noClaim: ComponentClaim = { cpuCores: 0, acceleratorCount: 0, memoryBytes: 0 };

/** An instance on which copies of several components can run. */
export interface SharedInstance {
  /** Null while the instance has no copy: the first copy assigns it to a node. */
  readonly node: NodeId | null;
  /** Sum of the claims of all copies on the instance. */
  readonly taken: ComponentClaim;
  /** Number of copies on the instance that belong to the component that is being placed. */
  readonly ownCount: number;
}

/** A node on which copies of a component can be placed. */
export interface CopyNode {
  readonly id: NodeId;
  /** Capacity of one instance of the component's variant on this node. */
  readonly has: ComponentClaim;
  /** Memory that is available for more copies of the component, in bytes. */
  readonly freeBytes: number;
}

/** The placement of a copy: the index of its instance, and the node of that instance. */
export interface CopySlot {
  readonly instance: number;
  readonly node: NodeId;
}

/** SageMaker's strategies for the placement of copies: distribute them over instances, or fill instances one by one. */
export type PlacementStrategy = "SPREAD" | "BINPACK";

/** Returns the element-wise sum of two claims. */
export function addClaims(one: ComponentClaim, other: ComponentClaim): ComponentClaim {
  return {
    cpuCores: one.cpuCores + other.cpuCores,
    acceleratorCount: one.acceleratorCount + other.acceleratorCount,
    memoryBytes: one.memoryBytes + other.memoryBytes,
  };
}

/** Returns whether an instance has capacity for one more copy. Floating-point sums are exact because cores are multiples of a quarter. */
export function claimFits(
  { has, taken }: { readonly has: ComponentClaim; readonly taken: ComponentClaim },
  claim: ComponentClaim,
): boolean {
  const sum = addClaims(taken, claim);
  return (
    sum.cpuCores <= has.cpuCores && sum.acceleratorCount <= has.acceleratorCount && sum.memoryBytes <= has.memoryBytes
  );
}

/** The copies of a component that must be placed. */
export interface CopiesRequest {
  readonly claim: ComponentClaim;
  /** Memory that a copy uses on its node, in bytes. */
  readonly copyBytes: number;
  readonly copyCount: number;
  readonly strategy: PlacementStrategy;
}

/**
 * Returns the placements of as many additional copies as instances and nodes have capacity for. SPREAD prefers the
 * instance with the fewest copies of the component, then the instance with the most free memory. BINPACK prefers the
 * instance with the least free memory. Among equal instances, the node with the most free memory is chosen. Existing
 * copies are not moved.
 */
export function placeCopies(
  instances: readonly SharedInstance[],
  nodes: readonly CopyNode[],
  { claim, copyBytes, copyCount, strategy }: CopiesRequest,
): readonly CopySlot[] {
  const states = [...instances];
  const freeBytes = new Map(nodes.map((node) => [node.id, node.freeBytes]));
  const placed: CopySlot[] = [];
  while (placed.length < copyCount) {
    let best: Candidate | null = null;
    for (const [instance, state] of states.entries()) {
      for (const { id, has } of nodes) {
        const nodeBytes = freeBytes.get(id) ?? 0;
        if (state.node !== null && state.node !== id) continue;
        if (nodeBytes < copyBytes || !claimFits({ has, taken: state.taken }, claim)) continue;
        const instanceFreeBytes = has.memoryBytes - state.taken.memoryBytes;
        const candidate = { instance, node: id, ownCount: state.ownCount, freeBytes: instanceFreeBytes, nodeBytes };
        if (best === null || isBetter(candidate, best, strategy)) best = candidate;
      }
    }
    const chosen = best === null ? undefined : states[best.instance];
    if (best === null || chosen === undefined) return placed;
    const { instance, node, nodeBytes } = best;
    states[instance] = { node, taken: addClaims(chosen.taken, claim), ownCount: chosen.ownCount + 1 };
    freeBytes.set(node, nodeBytes - copyBytes);
    placed.push({ instance, node });
  }
  return placed;
}

interface Candidate extends CopySlot {
  readonly ownCount: number;
  readonly freeBytes: number;
  readonly nodeBytes: number;
}

/** Returns whether the first candidate is strictly better. Equal candidates return false, so that the earlier one is chosen. */
function isBetter(one: Candidate, other: Candidate, strategy: PlacementStrategy): boolean {
  const isSpread = strategy === "SPREAD";
  if (isSpread && one.ownCount !== other.ownCount) return one.ownCount < other.ownCount;
  if (one.freeBytes !== other.freeBytes) return one.freeBytes > other.freeBytes === isSpread;
  return one.nodeBytes > other.nodeBytes;
}

/**
 * Returns the indexes of the copies to remove. Copies are removed from the instances with the most copies; among equal
 * instances, the last one loses a copy first.
 */
export function chooseSurplusCopies(instanceOf: readonly number[], surplusCount: number): ReadonlySet<number> {
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
