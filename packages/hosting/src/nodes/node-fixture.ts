import { localNode, type NodeDescription } from "./node.ts";

/** Returns the description of a node with 4 vCPUs and the given memory. */
export const nodeWith = (memoryBytes = Infinity): NodeDescription =>
  localNode({ memoryBytes, vcpuCount: 4, gpuCount: 0, diskBytes: Infinity });
