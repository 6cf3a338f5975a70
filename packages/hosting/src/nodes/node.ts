/** Amounts of a node's resources. */
export interface NodeResources {
  /** Without the memory of the system and the platform. */
  readonly memoryBytes: number;
  readonly vcpuCount: number;
  readonly gpuCount: number;
  /** Space on the file system of instances' models. */
  readonly diskBytes: number;
}

export type NodeId = string & { readonly nodeId: never };

/** A machine that instances run on, as it is described to the platform. */
export interface NodeDescription {
  readonly id: NodeId;
  readonly capacity: NodeResources;
  readonly labels: Readonly<Record<string, string>>;
}

/** A node, and the resources that are reserved for its instances. */
export interface Node extends NodeDescription {
  readonly reserved: NodeResources;
}

export const noResources: NodeResources = { memoryBytes: 0, vcpuCount: 0, gpuCount: 0, diskBytes: 0 };

const idPattern = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Returns a node id. Throws when the text is not a host name in lower case. */
export function parseNodeId(text: string): NodeId {
  if (!idPattern.test(text))
    throw new Error(`'${text}' is no node id: use lower-case letters, digits, dots and dashes`);
  return text as NodeId;
}

/** Returns the only node of a platform that runs its instances on its own machine. */
export const localNode = (capacity: NodeResources): NodeDescription => ({
  id: parseNodeId("local"),
  capacity,
  labels: {},
});
