/** The nodes on which instances run: their capacity, their reserved resources, and the placement of new instances. This module performs no I/O. */
export { instanceTypeBudget, usableMemoryBytes } from "./instance-budget.ts";
export { localNode, noResources, parseNodeId, type NodeDescription, type NodeId, type NodeResources } from "./node.ts";
export { notEnoughMemoryText, type EvictableModelCache, type MemoryShare, NodeMemory } from "./node-memory.ts";
export { OwnerLedger } from "./owner-ledger.ts";
export type { InstancePlacer, NodeReservation } from "./node-ledger.ts";
export type { InstanceRequest } from "./place-instance.ts";
export { Nodes, type DrainingInstances } from "./nodes.ts";
