import { AwsError, ChangeNotifier } from "@galatea/base";
import { noResources, type Node, type NodeDescription, type NodeId } from "./node.ts";
import type { NodeMemory } from "./node-memory.ts";
import { NodeLedger, type InstancePlacer, type NodeShare } from "./node-ledger.ts";
import { placeEach, placeInstance, refusalText, shortageText, type InstanceRequest } from "./place-instance.ts";

/** Draining instances of one owner. */
export interface Draining {
  /** The owner, as error messages name it. */
  readonly of: string;
  readonly bytes: number;
  /** When the latest of them began to drain. */
  readonly sinceMs: number;
  /** True if the owner is being deleted or stopped: its instances get less time to drain than those of an update. */
  readonly isEnding: boolean;
}

/** An instance without a node. */
export interface Unplaced {
  readonly memoryBytes: number;
  /** The shortage on the closest node, as text. */
  readonly shortage: string;
}

export interface NodesOptions {
  /** At least one. Placement prefers the first of equal nodes. */
  readonly nodes: readonly NodeDescription[];
  /** Returns the memory that records (and claims without a record) reserve for instances, placed or not. */
  readonly recordedBytes: () => number;
  /** Returns the same as the number of instances of each size. */
  readonly recordedCounts: () => Iterable<readonly [bytes: number, count: number]>;
  /** Returns the memory of changes that are being recorded. */
  readonly pendingBytes: () => number;
  /** Returns the size of each instance of changes that are being recorded. */
  readonly pendingInstances: () => Iterable<number>;
  /** Resolves at the next change of the records. */
  readonly recordsChanged: () => Promise<void>;
}

/** An owner's draining instances as `Nodes` counts them. Dispose it when they are removed. */
export interface CountedDraining extends Disposable {
  /** Reports that `look` returns other bytes now. */
  changed(): void;
}

/** The nodes that instances run on, and their reserved memory. An instance stays on the node where it was placed. */
export class Nodes implements InstancePlacer {
  /** Always false: draining instances are counted by their `OwnerLedger`. */
  readonly isDraining = false;
  readonly #options: NodesOptions;
  readonly #ledgers: readonly [NodeLedger, ...NodeLedger[]];
  /** Draining instances, whose memory no record reserves any more, with the bytes that the sum has of each. */
  readonly #draining = new Map<() => Draining, number>();
  /** The sum over all owners: each request to a multi-model container reads it when it ends. */
  #drainingBytes = 0;
  readonly #freed = new ChangeNotifier();

  constructor(options: NodesOptions) {
    this.#options = options;
    const [first, ...more] = options.nodes.map((node) => new NodeLedger(node, () => this.#unplacedBytes));
    if (first === undefined) throw new Error("a platform has one node at least");
    this.#ledgers = [first, ...more];
  }

  /** All nodes with their current reservations, in the order of the options. */
  get all(): readonly Node[] {
    return this.#ledgers.map(({ node }) => node);
  }

  place(request: InstanceRequest): NodeShare {
    const placed = placeInstance(this.all, request);
    if (typeof placed === "string") return this.#ledgerOf(placed).enter(request.needs);
    const text =
      "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error: " +
      `${refusalText(placed)}. Use a smaller instance, or delete what is no longer needed.`;
    throw new AwsError("InsufficientInstanceCapacity", text);
  }

  restore(request: InstanceRequest): NodeShare {
    const placed = placeInstance(this.all, request);
    const id = typeof placed === "string" ? placed : placed.closest;
    return this.#ledgerOf(id).enter(request.needs);
  }

  /** Returns the first of further instances that is larger than each node; null when there is none. */
  tooLarge(memoryBytesOfEach: Iterable<number>): Unplaced | null {
    const empty = this.all.map((node) => ({ ...node, reserved: noResources }));
    for (const memoryBytes of memoryBytesOfEach) {
      const { first } = placeEach(empty, [memoryBytes]);
      if (first !== null) return unplaced(first);
    }
    return null;
  }

  /**
   * Returns the first of further instances that no node has capacity for; null if there is none. Instances of
   * records, and of changes that are being recorded, are placed before them: otherwise endpoints that are created at
   * the same time would pass together. `when`: `drained` counts the memory of draining instances as free, for their
   * successors, which wait for it.
   */
  withoutRoom(memoryBytesOfEach: Iterable<number>, when: "now" | "drained"): Unplaced | null {
    const nodes = this.#ledgers.map((ledger) => (when === "now" ? ledger.node : ledger.drained));
    const expected = placeEach(nodes, [...this.#unplacedInstances(), ...this.#options.pendingInstances()]);
    const { first } = placeEach(expected.nodes, memoryBytesOfEach);
    return first === null ? null : unplaced(first);
  }

  /** Returns the memory that model caches on a node share. */
  memoryOf(id: NodeId): NodeMemory {
    return this.#ledgerOf(id).memory;
  }

  get memoryBytes(): number {
    return this.#ledgers.reduce((sum, { description }) => sum + description.capacity.memoryBytes, 0);
  }

  /** Memory of recorded and draining instances, and measured memory above reservations. */
  get usedBytes(): number {
    return this.#reservedBytes + this.#ledgers.reduce((sum, { excessBytes: beyondBytes }) => sum + beyondBytes, 0);
  }

  /** `usedBytes`, and the memory of changes that are being recorded. */
  get takenBytes(): number {
    return this.usedBytes + this.#options.pendingBytes();
  }

  /** Free memory of each node, in the order of the nodes. Each node keeps room for all instances without a node. */
  get freeOfEach(): readonly { readonly node: Node; readonly freeBytes: number }[] {
    const unplacedBytes = this.#unplacedBytes + this.#options.pendingBytes();
    return this.#ledgers.map(({ node, excessBytes: beyondBytes }) => {
      return { node, freeBytes: node.capacity.memoryBytes - node.reserved.memoryBytes - beyondBytes - unplacedBytes };
    });
  }

  /** True if all recorded and draining instances fit. */
  get fits(): boolean {
    return this.usedBytes <= this.memoryBytes;
  }

  /** Adds draining instances, which `look` returns at each call. */
  countDraining(look: () => Draining): CountedDraining {
    const count = (bytes: number) => {
      this.#drainingBytes += bytes - (this.#draining.get(look) ?? 0);
      this.#draining.set(look, bytes);
    };
    count(look().bytes);
    return {
      changed: () => count(look().bytes),
      [Symbol.dispose]: () => {
        count(0);
        this.#draining.delete(look);
      },
    };
  }

  get draining(): readonly Draining[] {
    return [...this.#draining.keys()].map((look) => look()).filter(({ bytes }) => bytes > 0);
  }

  /** Resolves when memory may have been freed. Call before reading `fits`; otherwise a change in between is missed. */
  freed(): Promise<void> {
    return Promise.race([this.#freed.nextChange(), this.#options.recordsChanged()]);
  }

  /** Reports that memory was freed. */
  notifyFreed(): void {
    this.#freed.notify();
  }

  get #reservedBytes(): number {
    return this.#options.recordedBytes() + this.#drainingBytes;
  }

  /** Memory of instances without a node. Each node keeps room for all of it, because they may be placed on any node. */
  get #unplacedBytes(): number {
    const placedBytes = this.#ledgers.reduce((sum, { reserved }) => sum + reserved.memoryBytes, 0);
    return Math.max(0, this.#reservedBytes - placedBytes);
  }

  /** Yields the sizes of recorded instances that no node has yet, up to the memory that is reserved for such instances. */
  *#unplacedInstances(): Iterable<number> {
    const counts = new Map<number, number>();
    const add = (bytes: number, count: number) => counts.set(bytes, (counts.get(bytes) ?? 0) + count);
    for (const [bytes, count] of this.#options.recordedCounts()) add(bytes, count);
    for (const { instanceBytes } of this.#ledgers) for (const bytes of instanceBytes) add(bytes, -1);
    let leftBytes = this.#unplacedBytes;
    for (const [bytes, count] of counts) {
      for (let index = 0; index < count && bytes <= leftBytes; index += 1) {
        leftBytes -= bytes;
        yield bytes;
      }
    }
  }

  #ledgerOf(id: string | null): NodeLedger {
    return this.#ledgers.find(({ description }) => description.id === id) ?? this.#ledgers[0];
  }
}

const unplaced = ({ memoryBytes, refusal }: NonNullable<ReturnType<typeof placeEach>["first"]>): Unplaced => {
  return { memoryBytes, shortage: shortageText(refusal) };
};
