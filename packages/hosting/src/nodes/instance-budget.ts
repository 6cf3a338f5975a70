import { instanceTypeSize, type InstanceBudget } from "../definitions/index.ts";
import type { Node } from "./node.ts";

/** Fraction of a machine's memory that instances may use. The operating system and the platform use the other part. */
const machineShare = 0.9;

/** Returns the memory capacity in bytes of a node with this much physical memory. */
export const usableMemoryBytes = (machineBytes: number): number => Math.floor(machineBytes * machineShare);

/**
 * Returns the resources of an instance of this type on a node: the node's own size for the type, or else the published size. Limits the size to
 * the node's capacity. An unknown type gets the whole capacity. vCPUs, GPUs and disk are shared with other instances of the node.
 */
export function instanceTypeBudget(
  type: string,
  { capacity, instanceTypes = {} }: Pick<Node, "capacity" | "instanceTypes">,
): InstanceBudget {
  const { [type]: own } = instanceTypes;
  if (own !== undefined) return own;
  const { vcpuCount, memoryBytes, gpuCount, diskBytes } = capacity;
  const published = instanceTypeSize(type);
  return {
    vcpuCount: Math.min(published?.vcpuCount ?? vcpuCount, vcpuCount),
    memoryBytes: Math.min(published?.memoryBytes ?? memoryBytes, memoryBytes),
    acceleratorCount: gpuCount,
    diskBytes,
  };
}
