import { instanceType, type InstanceBudget } from "../definitions/index.ts";
import type { Node } from "./node.ts";

/** Left to the system and to the platform itself. */
const machineShare = 0.9;

/** What of a machine's memory is a node's capacity. */
export const usableMemoryBytes = (machineBytes: number): number => Math.floor(machineBytes * machineShare);

/** The type's published size, clipped to the node; a type without one gets what the node has. Processors, GPUs and disk are shared with others. */
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
