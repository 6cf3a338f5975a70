import { NodeMemory } from "./node-memory.ts";
import { noResources, type Node, type NodeDescription, type NodeResources } from "./node.ts";
import { resourceNames, type InstanceRequest } from "./place-instance.ts";

/** What an instance takes of its node, from before it starts. Disposed when nothing of it is left. */
export interface NodeShare extends Disposable {
  readonly node: NodeDescription;
  /** Memory of the node that is its own. */
  readonly reservedBytes: number;
  /** From now on it ends when it has answered what it holds. */
  leaves(): void;
  /** Sets how many bytes its containers were last seen to take in addition to what is reserved for them. */
  measured(beyondBytes: number): void;
}

/** Places instances on nodes. */
export interface InstancePlacer {
  /** Whether instances that it placed leave, and make room for others when they are gone. */
  readonly isLeaving: boolean;
  /** For a new instance. Throws AwsError with SageMaker's failure reason where no node has room. */
  place(request: InstanceRequest): NodeShare;
  /** For an instance that was in service before the platform ended: it comes back also where its node has less than before. */
  restore(request: InstanceRequest): NodeShare;
}

interface Entry {
  readonly needs: NodeResources;
  beyondBytes: number;
}

/** Everything that is taken of one node. */
export class NodeLedger {
  readonly description: NodeDescription;
  /** For the models of its containers. */
  readonly memory: NodeMemory;
  readonly #entries = new Set<Entry>();

  /** `unplacedBytes`: memory that is reserved for instances without a node yet, which may come here. */
  constructor(description: NodeDescription, unplacedBytes: () => number) {
    this.description = description;
    this.memory = new NodeMemory({
      bytesMax: description.capacity.memoryBytes,
      reservedBytes: () => this.reserved.memoryBytes + this.beyondBytes + unplacedBytes(),
    });
  }

  get node(): Node {
    return { ...this.description, reserved: this.reserved };
  }

  get reserved(): NodeResources {
    return [...this.#entries].reduce((sum, { needs }) => resourceSum(sum, needs), noResources);
  }

  /** What instances were seen to take in addition to what is reserved for them. */
  get beyondBytes(): number {
    return [...this.#entries].reduce((sum, { beyondBytes }) => sum + beyondBytes, 0);
  }

  enter(needs: Partial<NodeResources>): NodeShare {
    const entry: Entry = { needs: { ...noResources, ...needs }, beyondBytes: 0 };
    this.#entries.add(entry);
    return {
      node: this.description,
      reservedBytes: entry.needs.memoryBytes,
      leaves: () => {},
      measured: (beyondBytes) => void (entry.beyondBytes = beyondBytes),
      [Symbol.dispose]: () => void this.#entries.delete(entry),
    };
  }
}

function resourceSum(one: NodeResources, other: NodeResources): NodeResources {
  const sum = { ...one };
  for (const resource of resourceNames) sum[resource] += other[resource];
  return sum;
}
