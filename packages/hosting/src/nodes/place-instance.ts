import { noResources, type Node, type NodeId, type NodeResources } from "./node.ts";

export type ResourceName = keyof NodeResources;

/** The resources and the node that an instance requires. */
export interface InstanceRequest {
  readonly needs: Partial<NodeResources>;
  /** The only node that it may be placed on; any node by default. */
  readonly node?: NodeId;
  /** Labels that the node must have; none by default. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** The reason that no node can take an instance. */
export interface Refusal {
  /** The eligible node with the smallest shortage; null when no node is eligible. */
  readonly closest: NodeId | null;
  /** The shortages of the closest node, largest share first. */
  readonly missing: readonly { readonly resource: ResourceName; readonly amount: number }[];
}

export const resourceNames = ["memoryBytes", "vcpuCount", "gpuCount", "diskBytes"] as const;

/**
 * Returns the node for a new instance: of the eligible nodes with room, the one with the most free memory, the first of equals. Never moves
 * other instances.
 */
export function placeInstance(nodes: readonly Node[], request: InstanceRequest): NodeId | Refusal {
  let best: Node | null = null;
  let closest: { readonly node: Node; readonly missing: Refusal["missing"]; readonly shortage: number } | null = null;
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
  readonly refusal: Refusal;
}

/** Places instances of these sizes one after the other, except those without room. Returns the nodes afterwards, and the first without room. */
export function placeEach(
  nodes: readonly Node[],
  memoryBytesOfEach: Iterable<number>,
): { readonly nodes: readonly Node[]; readonly first: WithoutNode | null } {
  let [now, first]: [readonly Node[], WithoutNode | null] = [nodes, null];
  for (const memoryBytes of memoryBytesOfEach) {
    const placed = placeInstance(now, { needs: { memoryBytes } });
    if (typeof placed === "string") {
      const needs = { ...noResources, memoryBytes };
      now = now.map((node) => (node.id === placed ? { ...node, reserved: resourceSum(node.reserved, needs) } : node));
    } else first ??= { memoryBytes, refusal: placed };
  }
  return { nodes: now, first };
}

export function resourceSum(one: NodeResources, other: NodeResources): NodeResources {
  const sum = { ...one };
  for (const resource of resourceNames) sum[resource] += other[resource];
  return sum;
}

const freeOf = ({ capacity, reserved }: Node, resource: ResourceName) => capacity[resource] - reserved[resource];

const hasLabels = ({ labels }: Node, required: Readonly<Record<string, string>>) =>
  Object.entries(required).every(([name, value]) => labels[name] === value);

/** Returns the missing resources. `share`: missing amount by needed amount; above 1 on a node that is reserved beyond its capacity. */
function missingOf(node: Node, needs: Partial<NodeResources>) {
  return resourceNames
    .flatMap((resource) => {
      const { [resource]: needed = 0 } = needs;
      const amount = needed - freeOf(node, resource);
      return needed > 0 && amount > 0 ? [{ resource, amount, share: amount / needed }] : [];
    })
    .toSorted((one, other) => other.share - one.share);
}

/** Returns a refusal as text: the shortages of the closest node. */
export function refusalText(refusal: Refusal): string {
  if (refusal.closest === null) return "no node is eligible for the instance";
  return `no node can hold the instance: ${shortageText(refusal)}`;
}

export function shortageText({ closest, missing }: Refusal): string {
  const amounts = missing.map(({ resource, amount }) => amountTexts[resource](amount));
  return `the node ${closest}, which comes closest, lacks ${amounts.join(" and ")}`;
}

const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`;
const amountTexts: Readonly<Record<ResourceName, (amount: number) => string>> = {
  memoryBytes: (bytes) => `${mebibytes(bytes)} of memory`,
  diskBytes: (bytes) => `${mebibytes(bytes)} of disk`,
  vcpuCount: (count) => `${count} vCPUs`,
  gpuCount: (count) => `${count} GPUs`,
};
