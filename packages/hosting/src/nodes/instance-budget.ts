import { instanceType, type InstanceBudget } from "../definitions/index.ts";
import type { Node } from "./node.ts";

/** The share of a machine's memory that instances may use; the system and the platform use the rest. */
const machineShare = 0.9;

/** Returns the memory capacity of a node on a machine. */
export const usableMemoryBytes = (machineBytes: number): number => Math.floor(machineBytes * machineShare);

/**
 * Returns the published size of an instance type, at most the node's capacity; an unknown type gets the whole capacity. Processors, GPUs and disk are
 * shared with other instances.
 */
export function budgetOf(type: string, { capacity }: Pick<Node, "capacity">): InstanceBudget {
  const { vcpuCount, memoryBytes, gpuCount, diskBytes } = capacity;
  const published = instanceType(type);
  return {
    vcpuCount: Math.min(published?.vcpuCount ?? vcpuCount, vcpuCount),
    memoryBytes: Math.min(published?.memoryBytes ?? memoryBytes, memoryBytes),
    acceleratorCount: gpuCount,
    diskBytes,
  };
}
