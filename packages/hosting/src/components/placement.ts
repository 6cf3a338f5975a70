import type { NodeId } from "../nodes/index.ts";

/** The part of its instance that each copy of a component claims. */
export interface ComponentClaim {
  readonly cpuCores: number;
  readonly acceleratorCount: number;
  readonly memoryBytes: number;
}

export const noClaim: ComponentClaim = { cpuCores: 0, acceleratorCount: 0, memoryBytes: 0 };

/** An instance that components share. */
export interface SharedInstance {
  /** Null while the instance has no copy: the first copy assigns it to a node. */
  readonly node: NodeId | null;
  /** Sum of the claims of its copies. */
  readonly taken: ComponentClaim;
  /** Number of copies of the component that is being placed. */
  readonly ownCount: number;
}

/** A node for copies of a component. */
export interface CopyNode {
  readonly id: NodeId;
  /** Size of an instance of the component's variant on the node. */
  readonly has: ComponentClaim;
  /** Bytes of memory for more copies of the component. */
  readonly freeBytes: number;
}

/** The placement of a copy: the position of its instance. */
export interface CopySlot {
  readonly instance: number;
  readonly node: NodeId;
}

export type PlacementStrategy = "SPREAD" | "BINPACK";

export function claimSum(one: ComponentClaim, other: ComponentClaim): ComponentClaim {
  return {
    cpuCores: one.cpuCores + other.cpuCores,
    acceleratorCount: one.acceleratorCount + other.acceleratorCount,
    memoryBytes: one.memoryBytes + other.memoryBytes,
  };
}

/** Returns whether an instance has capacity for one more copy. Cores come in quarters, so sums of them are exact. */
export function fits(
  { has, taken }: { readonly has: ComponentClaim; readonly taken: ComponentClaim },
  claim: ComponentClaim,
): boolean {
  const sum = claimSum(taken, claim);
  return (
    sum.cpuCores <= has.cpuCores && sum.acceleratorCount <= has.acceleratorCount && sum.memoryBytes <= has.memoryBytes
  );
}

/** The copies of a component that need an instance. */
export interface CopiesRequest {
  readonly claim: ComponentClaim;
  /** Memory that a copy takes of its node, in bytes. */
  readonly copyBytes: number;
  readonly copyCount: number;
  readonly strategy: PlacementStrategy;
}

/**
 * Returns the placement of additional copies: as many as instances and their nodes have capacity for. SPREAD prefers
 * the instance with the fewest copies of the component, and of such instances the one with the most free memory;
 * BINPACK prefers the fullest. Ties go to the node with the most free memory, and then to the first. Placed copies do
 * not move.
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
        if (nodeBytes < copyBytes || !fits({ has, taken: state.taken }, claim)) continue;
        const leftBytes = has.memoryBytes - state.taken.memoryBytes;
        const candidate = { instance, node: id, ownCount: state.ownCount, leftBytes, nodeBytes };
        if (best === null || isBetter(candidate, best, strategy)) best = candidate;
      }
    }
    const chosen = best === null ? undefined : states[best.instance];
    if (best === null || chosen === undefined) return placed;
    const { instance, node, nodeBytes } = best;
    states[instance] = { node, taken: claimSum(chosen.taken, claim), ownCount: chosen.ownCount + 1 };
    freeBytes.set(node, nodeBytes - copyBytes);
    placed.push({ instance, node });
  }
  return placed;
}

interface Candidate extends CopySlot {
  readonly ownCount: number;
  readonly leftBytes: number;
  readonly nodeBytes: number;
}

/** Returns false for equal candidates: the first one stays. */
function isBetter(one: Candidate, other: Candidate, strategy: PlacementStrategy): boolean {
  const isSpread = strategy === "SPREAD";
  if (isSpread && one.ownCount !== other.ownCount) return one.ownCount < other.ownCount;
  if (one.leftBytes !== other.leftBytes) return one.leftBytes > other.leftBytes === isSpread;
  return one.nodeBytes > other.nodeBytes;
}

/**
 * Returns the positions of the copies to remove: from the instances with the most copies, starting with the last one.
 */
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
