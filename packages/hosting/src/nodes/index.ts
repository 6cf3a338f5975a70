/** The nodes that instances run on: what each has, what is taken of it, and where a new instance goes. No IO. */
export { budgetOf, usableMemoryBytes } from "./instance-budget.ts";
export { localNode, noResources, type NodeDescription, type NodeId, type NodeResources } from "./node.ts";
export { missingText, type MemoryHolder, type MemoryShare, NodeMemory } from "./node-memory.ts";
export { InstanceAccount } from "./instance-account.ts";
export type { InstancePlacer, NodeShare } from "./node-ledger.ts";
export type { InstanceRequest } from "./place-instance.ts";
export { Nodes, type Leaving } from "./nodes.ts";
