import { NodeMemory } from "./node-memory.ts";
import { noResources, type Node, type NodeDescription, type NodeResources } from "./node.ts";
import { addResources, type InstanceRequest } from "./place-instance.ts";

/** The resources that an instance reserves on its node. The reservation is made before the instance starts; dispose it when the instance is removed. */
export interface NodeReservation extends Disposable {
  readonly node: NodeDescription;
  /** Memory that is reserved for the instance. */
  readonly reservedBytes: number;
  /** Marks the instance as draining: it stops when its requests in flight have ended. */
  markDraining(): void;
  /** Sets the bytes of memory that the instance's containers use above the reservation. */
  setExcessBytes(excessBytes: number): void;
}

/** Places instances on nodes. */
export interface InstancePlacer {
  /** True if instances of this placer are draining. Their memory becomes free when they have ended. */
  readonly isDraining: boolean;
  /** Reserves resources for a new instance on a node. Throws AwsError with SageMaker's failure reason if no node has capacity. */
  place(request: InstanceRequest): NodeReservation;
  /** Reserves resources for an instance that was in service before the platform restarted, even if its node lacks capacity. */
  restore(request: InstanceRequest): NodeReservation;
}

interface Entry {
  readonly needs: NodeResources;
  excessBytes: number;
  isDraining: boolean;
}

/** The reserved and measured resources of one node. */
export class NodeLedger {
  #description: NodeDescription;
  /** The memory of the node that model caches share. */
  readonly memory: NodeMemory;
  readonly #entries = new Set<Entry>();
  /** Cached sums over the entries, because each request to a multi-model container reads them. */
  #reserved = noResources;
  #excessBytes = 0;

  /** `unplacedBytes`: returns the bytes that are reserved for instances without a node, because each may be placed on this node. */
  constructor(description: NodeDescription, unplacedBytes: () => number) {
    this.#description = description;
    this.memory = new NodeMemory({
      bytesMax: description.capacity.memoryBytes,
      reservedBytes: () => this.reserved.memoryBytes + this.excessBytes + unplacedBytes(),
    });
  }

  get description(): NodeDescription {
    return this.#description;
  }

  /** Replaces the capacity for later placements; null while the node does not respond. Existing reservations stay. */
  setCapacity(capacity: NodeResources | null): void {
    this.#description = { ...this.#description, capacity: capacity ?? noResources };
  }

  get node(): Node {
    return { ...this.description, reserved: this.reserved };
  }

  get reserved(): NodeResources {
    return this.#reserved;
  }

  /** The node as it will be after all draining instances have stopped. */
  get nodeAfterDrains(): Node {
    return { ...this.description, reserved: reservedOf([...this.#entries].filter(({ isDraining }) => !isDraining)) };
  }

  /** Bytes of memory of each instance that is not draining. */
  get instanceBytes(): readonly number[] {
    return [...this.#entries].flatMap(({ needs, isDraining }) => (isDraining ? [] : needs.memoryBytes));
  }

  /** Sum of the bytes that instances use above their reservations. */
  get excessBytes(): number {
    return this.#excessBytes;
  }

  reserve(needs: Partial<NodeResources>): NodeReservation {
    const entry: Entry = { needs: { ...noResources, ...needs }, excessBytes: 0, isDraining: false };
    this.#entries.add(entry);
    this.#sumEntries();
    return {
      node: this.description,
      reservedBytes: entry.needs.memoryBytes,
      markDraining: () => void (entry.isDraining = true),
      setExcessBytes: (beyondBytes) => {
        entry.excessBytes = beyondBytes;
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
    this.#excessBytes = entries.reduce((sum, { excessBytes }) => sum + excessBytes, 0);
  }
}

const reservedOf = (entries: readonly Entry[]) =>
  entries.reduce((sum, { needs }) => addResources(sum, needs), noResources);
