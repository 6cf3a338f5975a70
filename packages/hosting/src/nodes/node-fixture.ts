import { localNode, type NodeDescription } from "./node.ts";

/** Returns a node with this much memory and 4 vCPUs. */
export const nodeWith = (memoryBytes = Infinity): NodeDescription =>
  localNode({ memoryBytes, vcpuCount: 4, gpuCount: 0, diskBytes: Infinity });
