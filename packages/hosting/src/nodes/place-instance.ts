import { noResources, type Node, type NodeId, type NodeResources } from "./node.ts";

export type NodeResourceName = keyof NodeResources;

/** The resources of a new instance, and the conditions on its node. */
export interface InstanceRequest {
  readonly needs: Partial<NodeResources>;
  /** The only node on which the instance may be placed; any node if absent. */
  readonly node?: NodeId;
  /** Labels that the node must have; none if absent. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** The reason why an instance cannot be placed on any node. */
export interface PlacementRefusal {
  /** The eligible node with the smallest shortage; null if no node has the required labels. */
  readonly closest: NodeId | null;
  /** The missing resources on the closest node, largest relative shortage first. */
  readonly missing: readonly { readonly resource: NodeResourceName; readonly amount: number }[];
}

export const nodeResourceNames = ["memoryBytes", "vcpuCount", "gpuCount", "diskBytes"] as const;

/**
 * Returns the node for a new instance: the eligible node with the most free memory, or the first of several equal ones. Existing instances are
 * not moved.
 */
export function placeInstance(nodes: readonly Node[], request: InstanceRequest): NodeId | PlacementRefusal {
  let best: Node | null = null;
  let closest: {
    readonly node: Node;
    readonly missing: PlacementRefusal["missing"];
    readonly shortage: number;
  } | null = null;
  for (const node of nodes) {
    if (node.id !== (request.node ?? node.id) || !hasLabels(node, request.labels ?? {})) continue;
    const missing = missingOf(node, request.needs);
    if (missing.length === 0) {
      if (best === null || freeOf(node, "memoryBytes") > freeOf(best, "memoryBytes")) best = node;
      continue;
    }
    const shortage = missing.reduce((sum, { share }) => sum + share, 0);
    if (closest === null || shortage < closest.shortage) closest = { node, missing, shortage };
  }
  if (best !== null) return best.id;
  if (closest === null) return { closest: null, missing: [] };
  return { closest: closest.node.id, missing: closest.missing.map(({ resource, amount }) => ({ resource, amount })) };
}

interface WithoutNode {
  readonly memoryBytes: number;
  readonly refusal: PlacementRefusal;
}

/** Places instances of the given bytes one after another. Returns the nodes with the added reservations, and the first instance that fits on no node. */
export function placeInstances(
  nodes: readonly Node[],
  memoryBytesOfEach: Iterable<number>,
): { readonly nodes: readonly Node[]; readonly first: WithoutNode | null } {
  let [now, first]: [readonly Node[], WithoutNode | null] = [nodes, null];
  for (const memoryBytes of memoryBytesOfEach) {
    const placed = placeInstance(now, { needs: { memoryBytes } });
    if (typeof placed === "string") {
      const needs = { ...noResources, memoryBytes };
      now = now.map((node) => (node.id === placed ? { ...node, reserved: addResources(node.reserved, needs) } : node));
    } else first ??= { memoryBytes, refusal: placed };
  }
  return { nodes: now, first };
}

export function addResources(one: NodeResources, other: NodeResources): NodeResources {
  const sum = { ...one };
  for (const resource of nodeResourceNames) sum[resource] += other[resource];
  return sum;
}

const freeOf = ({ capacity, reserved }: Node, resource: NodeResourceName) => capacity[resource] - reserved[resource];

const hasLabels = ({ labels }: Node, required: Readonly<Record<string, string>>) =>
  Object.entries(required).every(([name, value]) => labels[name] === value);

/** Returns the resources that a node lacks. `share`: missing amount divided by needed amount, which exceeds 1 on an overcommitted node. */
function missingOf(node: Node, needs: Partial<NodeResources>) {
  return nodeResourceNames
    .flatMap((resource) => {
      const { [resource]: needed = 0 } = needs;
      const amount = needed - freeOf(node, resource);
      return needed > 0 && amount > 0 ? [{ resource, amount, share: amount / needed }] : [];
    })
    .toSorted((one, other) => other.share - one.share);
}

/** Returns the text of a refusal, which names the missing resources of the closest node. */
export function placementRefusalText(refusal: PlacementRefusal): string {
  if (refusal.closest === null) return "no node is eligible for the instance";
  return `no node can hold the instance: ${shortageText(refusal)}`;
}

export function shortageText({ closest, missing }: PlacementRefusal): string {
  const amounts = missing.map(({ resource, amount }) => amountTexts[resource](amount));
  return `the node ${closest}, which comes closest, lacks ${amounts.join(" and ")}`;
}

const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`;
const amountTexts: Readonly<Record<NodeResourceName, (amount: number) => string>> = {
  memoryBytes: (bytes) => `${mebibytes(bytes)} of memory`,
  diskBytes: (bytes) => `${mebibytes(bytes)} of disk`,
  vcpuCount: (count) => `${count} vCPUs`,
  gpuCount: (count) => `${count} GPUs`,
};
