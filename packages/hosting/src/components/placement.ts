import type { NodeId } from "../nodes/index.ts";

/** What each copy of a component takes of the instance that it is on. */
export interface ComponentClaim {
  readonly cpuCores: number;
  readonly acceleratorCount: number;
  readonly memoryBytes: number;
}

export const noClaim: ComponentClaim = { cpuCores: 0, acceleratorCount: 0, memoryBytes: 0 };

/** An instance that components share. */
export interface SharedInstance {
  /** Null while no copy is on it: the first one takes it to a node. */
  readonly node: NodeId | null;
  /** What copies have of it. */
  readonly taken: ComponentClaim;
  /** Copies of the component that is being placed. */
  readonly ownCount: number;
}

/** A node that copies of a component may come to. */
export interface CopyNode {
  readonly id: NodeId;
  /** What an instance of the component's variant has on it. */
  readonly has: ComponentClaim;
  /** Memory for more copies of the component. */
  readonly freeBytes: number;
}

/** Where a copy goes: the instance by its position. */
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

/** Whether an instance has room for one more. Cores come in quarters, so sums of them are exact. */
export function fits(
  { has, taken }: { readonly has: ComponentClaim; readonly taken: ComponentClaim },
  claim: ComponentClaim,
): boolean {
  const sum = claimSum(taken, claim);
  return (
    sum.cpuCores <= has.cpuCores && sum.acceleratorCount <= has.acceleratorCount && sum.memoryBytes <= has.memoryBytes
  );
}

/** The copies of a component that need a place. */
export interface CopiesRequest {
  readonly claim: ComponentClaim;
  /** Memory that a copy takes of its node. */
  readonly copyBytes: number;
  readonly copyCount: number;
  readonly strategy: PlacementStrategy;
}

/**
 * Returns where so many more copies go: as many of them as instances and their nodes have room for. To spread is to go where the component
 * has fewest copies, and of such instances to the one with most memory left; to pack is to go to the fullest. Of equals the one whose node
 * has most memory is chosen, and then the first. Nothing that is placed moves.
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

/** False for equal candidates: the first one stays. */
function isBetter(one: Candidate, other: Candidate, strategy: PlacementStrategy): boolean {
  const isSpread = strategy === "SPREAD";
  if (isSpread && one.ownCount !== other.ownCount) return one.ownCount < other.ownCount;
  if (one.leftBytes !== other.leftBytes) return one.leftBytes > other.leftBytes === isSpread;
  return one.nodeBytes > other.nodeBytes;
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
