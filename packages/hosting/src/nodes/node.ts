import type { InstanceBudget } from "../definitions/index.ts";

/** Amounts of a node's resources. */
export interface NodeResources {
  /** Bytes of memory, without the memory of the operating system and of the platform. */
  readonly memoryBytes: number;
  readonly vcpuCount: number;
  readonly gpuCount: number;
  /** Bytes of the file system that contains the models of instances. */
  readonly diskBytes: number;
}

/** The name of a node: a lower-case host name. */
export type NodeId = string & { readonly nodeId: never };

/** A machine on which instances run, with its total capacity. */
export interface NodeDescription {
  readonly id: NodeId;
  readonly capacity: NodeResources;
  readonly labels: Readonly<Record<string, string>>;
  /** Resources of instance types on this node, if they differ from the published sizes. */
  readonly instanceTypes?: Readonly<Record<string, InstanceBudget>>;
}

/** A node with the resources that are reserved for its instances. */
export interface Node extends NodeDescription {
  readonly reserved: NodeResources;
}

/** Resources of size zero. */
export const noResources: NodeResources = { memoryBytes: 0, vcpuCount: 0, gpuCount: 0, diskBytes: 0 };

const idPattern = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Parses a node id. Throws if the text is not a lower-case host name. */
export function parseNodeId(text: string): NodeId {
  if (!idPattern.test(text))
    throw new Error(`invalid node id '${text}': use lower-case letters, digits, dots and dashes`);
  return text as NodeId;
}

/** Returns the description of the platform's own machine as the only node. */
export const localNode = (capacity: NodeResources): NodeDescription => ({
  id: parseNodeId("local"),
  capacity,
  labels: {},
});
