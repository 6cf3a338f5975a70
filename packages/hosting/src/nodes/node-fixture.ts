import { localNode, type NodeDescription } from "./node.ts";

/** A node with so much memory, and enough of everything else. */
export const nodeWith = (memoryBytes = Infinity): NodeDescription =>
  localNode({ memoryBytes, vcpuCount: 4, gpuCount: 0, diskBytes: Infinity });
