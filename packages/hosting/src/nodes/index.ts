/** The nodes that instances run on: their capacity, their reserved resources, and the placement of new instances. No IO. */
export { budgetOf, usableMemoryBytes } from "./instance-budget.ts";
export { localNode, noResources, type NodeDescription, type NodeId, type NodeResources } from "./node.ts";
export { notEnoughMemoryText, type MemoryHolder, type MemoryShare, NodeMemory } from "./node-memory.ts";
export { OwnerLedger } from "./owner-ledger.ts";
export type { InstancePlacer, NodeShare } from "./node-ledger.ts";
export type { InstanceRequest } from "./place-instance.ts";
export { Nodes, type Draining } from "./nodes.ts";
