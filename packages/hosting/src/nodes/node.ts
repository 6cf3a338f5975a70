/** Amounts of what a node has. */
export interface NodeResources {
  /** What the system and the platform take for themselves is not among it. */
  readonly memoryBytes: number;
  readonly vcpuCount: number;
  readonly gpuCount: number;
  /** Of the disk that instances' models lie on. */
  readonly diskBytes: number;
}

export type NodeId = string & { readonly nodeId: never };

/** A machine that instances run on, as it is described to the platform. */
export interface NodeDescription {
  readonly id: NodeId;
  readonly capacity: NodeResources;
  readonly labels: Readonly<Record<string, string>>;
}

/** A node with what its instances have of it. */
export interface Node extends NodeDescription {
  readonly reserved: NodeResources;
}

export const noResources: NodeResources = { memoryBytes: 0, vcpuCount: 0, gpuCount: 0, diskBytes: 0 };

const idPattern = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Throws where the text is no name of a host. */
export function parseNodeId(text: string): NodeId {
  if (!idPattern.test(text))
    throw new Error(`'${text}' is no node id: use lower-case letters, digits, dots and dashes`);
  return text as NodeId;
}

/** The only node of a platform that runs its instances itself. */
export const localNode = (capacity: NodeResources): NodeDescription => ({
  id: parseNodeId("local"),
  capacity,
  labels: {},
});
