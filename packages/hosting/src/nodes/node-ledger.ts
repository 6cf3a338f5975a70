import { NodeMemory } from "./node-memory.ts";
import { noResources, type Node, type NodeDescription, type NodeResources } from "./node.ts";
import { resourceSum, type InstanceRequest } from "./place-instance.ts";

/** The resources that an instance reserves on its node. Created before it starts; dispose it when the instance is removed. */
export interface NodeShare extends Disposable {
  readonly node: NodeDescription;
  /** Memory that is reserved for the instance. */
  readonly reservedBytes: number;
  /** Marks the instance as draining: it ends when its pending requests have. */
  drains(): void;
  /** Sets the measured memory of its containers above the reservation. */
  measured(beyondBytes: number): void;
}

/** Places instances on nodes. */
export interface InstancePlacer {
  /** True if instances of this placer are draining. Their memory becomes free when they have ended. */
  readonly isDraining: boolean;
  /** Reserves resources for a new instance. Throws AwsError with SageMaker's failure reason when no node has room. */
  place(request: InstanceRequest): NodeShare;
  /** Reserves resources for an instance that was in service before the platform restarted, even when its node has no room for it. */
  restore(request: InstanceRequest): NodeShare;
}

interface Entry {
  readonly needs: NodeResources;
  beyondBytes: number;
  isDraining: boolean;
}

/** The reserved and measured resources of one node. */
export class NodeLedger {
  readonly description: NodeDescription;
  /** The memory that model caches on the node share. */
  readonly memory: NodeMemory;
  readonly #entries = new Set<Entry>();
  /** Sums over the entries: each request to a multi-model container reads them when it ends. */
  #reserved = noResources;
  #beyondBytes = 0;

  /** `unplacedBytes`: memory that is reserved for instances without a node, any of which may be placed here. */
  constructor(description: NodeDescription, unplacedBytes: () => number) {
    this.description = description;
    this.memory = new NodeMemory({
      bytesMax: description.capacity.memoryBytes,
      reservedBytes: () => this.reserved.memoryBytes + this.excessBytes + unplacedBytes(),
    });
  }

  get node(): Node {
    return { ...this.description, reserved: this.reserved };
  }

  get reserved(): NodeResources {
    return this.#reserved;
  }

  /** The node when all draining instances have ended. */
  get drained(): Node {
    return { ...this.description, reserved: reservedOf([...this.#entries].filter(({ isDraining }) => !isDraining)) };
  }

  /** The size of each instance that is not draining. */
  get instanceBytes(): readonly number[] {
    return [...this.#entries].flatMap(({ needs, isDraining }) => (isDraining ? [] : needs.memoryBytes));
  }

  /** Measured memory of all instances above their reservations. */
  get excessBytes(): number {
    return this.#beyondBytes;
  }

  enter(needs: Partial<NodeResources>): NodeShare {
    const entry: Entry = { needs: { ...noResources, ...needs }, beyondBytes: 0, isDraining: false };
    this.#entries.add(entry);
    this.#sumEntries();
    return {
      node: this.description,
      reservedBytes: entry.needs.memoryBytes,
      drains: () => void (entry.isDraining = true),
      measured: (beyondBytes) => {
        entry.beyondBytes = beyondBytes;
        this.#sumEntries();
      },
      [Symbol.dispose]: () => {
        this.#entries.delete(entry);
        this.#sumEntries();
      },
    };
  }

  #sumEntries(): void {
    const entries = [...this.#entries];
    this.#reserved = reservedOf(entries);
    this.#beyondBytes = entries.reduce((sum, { beyondBytes }) => sum + beyondBytes, 0);
  }
}

const reservedOf = (entries: readonly Entry[]) =>
  entries.reduce((sum, { needs }) => resourceSum(sum, needs), noResources);
