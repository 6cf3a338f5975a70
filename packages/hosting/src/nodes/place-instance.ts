import type { Node, NodeId, NodeResources } from "./node.ts";

export type ResourceName = keyof NodeResources;

/** What an instance is to have of a node for itself. */
export interface InstanceRequest {
  readonly needs: Partial<NodeResources>;
  /** The only node that it may come to; any unless given. */
  readonly node?: NodeId;
  /** The node has them all; none unless given. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Why no node takes an instance. */
export interface Refusal {
  /** The node that lacks least of what is asked for; null where no node is one that it may come to. */
  readonly closest: NodeId | null;
  /** What the closest node lacks, the scarcest first. */
  readonly missing: readonly { readonly resource: ResourceName; readonly amount: number }[];
}

export const resourceNames = ["memoryBytes", "vcpuCount", "gpuCount", "diskBytes"] as const;

/**
 * Returns the node that a new instance goes to: of those with room for it the one with the most memory left, the first of equals. Instances
 * that are there stay where they are.
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

const freeOf = ({ capacity, reserved }: Node, resource: ResourceName) => capacity[resource] - reserved[resource];

const hasLabels = ({ labels }: Node, wanted: Readonly<Record<string, string>>) =>
  Object.entries(wanted).every(([name, value]) => labels[name] === value);

/** `share`: how much of what is needed is missing, from 0 to 1 and beyond. What needs nothing of a resource lacks nothing of it. */
function missingOf(node: Node, needs: Partial<NodeResources>) {
  return resourceNames
    .flatMap((resource) => {
      const { [resource]: needed = 0 } = needs;
      const amount = needed - freeOf(node, resource);
      return needed > 0 && amount > 0 ? [{ resource, amount, share: amount / needed }] : [];
    })
    .toSorted((one, other) => other.share - one.share);
}

/** As a sentence says it: what the closest node lacks. */
export function refusalText({ closest, missing }: Refusal): string {
  if (closest === null) return "no node is one that the instance may come to";
  const amounts = missing.map(({ resource, amount }) => amountTexts[resource](amount));
  return `no node has room for the instance: the node ${closest}, which comes closest, lacks ${amounts.join(" and ")}`;
}

const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`;
const amountTexts: Readonly<Record<ResourceName, (amount: number) => string>> = {
  memoryBytes: (bytes) => `${mebibytes(bytes)} of memory`,
  diskBytes: (bytes) => `${mebibytes(bytes)} of disk`,
  vcpuCount: (count) => `${count} vCPUs`,
  gpuCount: (count) => `${count} GPUs`,
};
