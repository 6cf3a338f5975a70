import { AwsError, ChangeNotifier } from "@galatea/base";
import { noResources, type Node, type NodeDescription, type NodeId, type NodeResources } from "./node.ts";
import type { NodeMemory } from "./node-memory.ts";
import { NodeLedger, type InstancePlacer, type NodeReservation } from "./node-ledger.ts";
import {
  placeInstances,
  placeInstance,
  placementRefusalText,
  shortageText,
  type InstanceRequest,
} from "./place-instance.ts";

/** The draining instances of one owner. */
export interface DrainingInstances {
  /** The endpoint, job or component, as error messages name it. */
  readonly owner: string;
  readonly bytes: number;
  /** Epoch time at which the latest of the instances began to drain. */
  readonly sinceMs: number;
  /** True if the owner is being deleted or stopped: its instances have less time to drain than during an update. */
  readonly isEnding: boolean;
}

/** An instance that fits on no node. */
export interface InstanceShortage {
  readonly memoryBytes: number;
  /** The missing resources on the node with the smallest shortage, as text. */
  readonly shortage: string;
}

export interface NodesOptions {
  /** At least one node. Among equal nodes, the first one is preferred. */
  readonly nodes: readonly NodeDescription[];
  /** Returns the bytes that records and claims without records reserve for instances, with and without a node. */
  readonly recordedBytes: () => number;
  /** Returns the reservations of `recordedBytes` as pairs of an instance size in bytes and the number of instances of this size. */
  readonly recordedCounts: () => Iterable<readonly [bytes: number, count: number]>;
  /** Returns the bytes of changes whose records are being written. */
  readonly pendingBytes: () => number;
  /** Returns the bytes of each instance of changes whose records are being written. */
  readonly pendingInstances: () => Iterable<number>;
  /** Resolves at the next change of the records. */
  readonly recordsChanged: () => Promise<void>;
}

/** The part of `Nodes` that counts the draining instances of one owner. Dispose it when they are removed. */
export interface DrainingCount extends Disposable {
  /** Reads the bytes of the draining instances again. Call it after they have changed. */
  update(): void;
}

/** The nodes on which instances run, and their reserved memory. An instance stays on the node on which it was placed. */
export class Nodes implements InstancePlacer {
  /** Always false: the `OwnerLedger` of each endpoint or component counts draining instances. */
  readonly isDraining = false;
  readonly #options: NodesOptions;
  readonly #ledgers: readonly [NodeLedger, ...NodeLedger[]];
  /**
   * For each owner, a function that returns its draining instances, and their bytes at the last `update`. No record reserves this
   * memory.
   */
  readonly #draining = new Map<() => DrainingInstances, number>();
  /** The sum of all values of `#draining`, cached because each request to a multi-model container reads it. */
  #drainingBytes = 0;
  readonly #freed = new ChangeNotifier();

  constructor(options: NodesOptions) {
    this.#options = options;
    const [first, ...more] = options.nodes.map((node) => new NodeLedger(node, () => this.#unplacedBytes));
    if (first === undefined) throw new Error("bug: a platform needs at least one node");
    this.#ledgers = [first, ...more];
  }

  /** All nodes with their current reservations, in the order of the options. */
  get all(): readonly Node[] {
    return this.#ledgers.map(({ node }) => node);
  }

  place(request: InstanceRequest): NodeReservation {
    const placed = placeInstance(this.all, request);
    if (typeof placed === "string") return this.#ledgerOf(placed).reserve(request.needs);
    const text =
      "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error: " +
      `${placementRefusalText(placed)}. Use a smaller instance, or delete what is no longer needed.`;
    throw new AwsError("InsufficientInstanceCapacity", text);
  }

  restore(request: InstanceRequest): NodeReservation {
    const placed = placeInstance(this.all, request);
    const id = typeof placed === "string" ? placed : placed.closest;
    return this.#ledgerOf(id).reserve(request.needs);
  }

  /** Returns the first of the given new instances that is larger than every node; null if there is none. */
  firstTooLarge(memoryBytesOfEach: Iterable<number>): InstanceShortage | null {
    const empty = this.all.map((node) => ({ ...node, reserved: noResources }));
    for (const memoryBytes of memoryBytesOfEach) {
      const { first } = placeInstances(empty, [memoryBytes]);
      if (first !== null) return unplaced(first);
    }
    return null;
  }

  /**
   * Returns the first of the given new instances for which no node has capacity; null if there is none. Recorded
   * instances without a node, and instances of changes that are being recorded, are placed before the new ones.
   * Otherwise, endpoints that are created at the same time could exceed the capacity together. If `when` is `drained`,
   * the memory of draining instances counts as free, because the new instances wait for it.
   */
  firstWithoutCapacity(memoryBytesOfEach: Iterable<number>, when: "now" | "drained"): InstanceShortage | null {
    const nodes = this.#ledgers.map((ledger) => (when === "now" ? ledger.node : ledger.nodeAfterDrains));
    const expected = placeInstances(nodes, [...this.#unplacedInstances(), ...this.#options.pendingInstances()]);
    const { first } = placeInstances(expected.nodes, memoryBytesOfEach);
    return first === null ? null : unplaced(first);
  }

  /** Sets the capacity that a node announces; null while it does not respond, so that no instance is placed on it. */
  setCapacity(id: NodeId, capacity: NodeResources | null): void {
    this.#ledgerOf(id).setCapacity(capacity);
    this.notifyFreed();
  }

  /** Returns the memory of a node that its model caches share. */
  memoryOf(id: NodeId): NodeMemory {
    return this.#ledgerOf(id).memory;
  }

  get memoryBytes(): number {
    return this.#ledgers.reduce((sum, { description }) => sum + description.capacity.memoryBytes, 0);
  }

  /** Bytes of recorded and draining instances, plus the bytes that instances use above their reservations. */
  get usedBytes(): number {
    return this.#reservedBytes + this.#ledgers.reduce((sum, { excessBytes }) => sum + excessBytes, 0);
  }

  /** `usedBytes`, plus the bytes of changes whose records are being written. */
  get committedBytes(): number {
    return this.usedBytes + this.#options.pendingBytes();
  }

  /** Free memory of each node, in the order of the nodes. The memory of instances without a node is subtracted from every node. */
  get freeBytesByNode(): readonly { readonly node: Node; readonly freeBytes: number }[] {
    const unplacedBytes = this.#unplacedBytes + this.#options.pendingBytes();
    return this.#ledgers.map(({ node, excessBytes }) => {
      return { node, freeBytes: node.capacity.memoryBytes - node.reserved.memoryBytes - excessBytes - unplacedBytes };
    });
  }

  /** True if the nodes have enough memory for all recorded and draining instances. */
  get hasCapacityForAll(): boolean {
    return this.usedBytes <= this.memoryBytes;
  }

  /** Counts the draining instances of an owner. `look` returns the draining instances at the time of the call. */
  countDraining(look: () => DrainingInstances): DrainingCount {
    const count = (bytes: number) => {
      this.#drainingBytes += bytes - (this.#draining.get(look) ?? 0);
      this.#draining.set(look, bytes);
    };
    count(look().bytes);
    return {
      update: () => count(look().bytes),
      [Symbol.dispose]: () => {
        count(0);
        this.#draining.delete(look);
      },
    };
  }

  get draining(): readonly DrainingInstances[] {
    return [...this.#draining.keys()].map((look) => look()).filter(({ bytes }) => bytes > 0);
  }

  /** Resolves when memory may have been freed. Call it before `hasCapacityForAll` is read; otherwise, a change in between is missed. */
  whenFreed(): Promise<void> {
    return Promise.race([this.#freed.nextChange(), this.#options.recordsChanged()]);
  }

  /** Notifies the callers of `whenFreed`. */
  notifyFreed(): void {
    this.#freed.notify();
  }

  get #reservedBytes(): number {
    return this.#options.recordedBytes() + this.#drainingBytes;
  }

  /** Bytes of recorded instances without a node. Every node keeps this much free, because the instances may be placed on any node. */
  get #unplacedBytes(): number {
    const placedBytes = this.#ledgers.reduce((sum, { reserved }) => sum + reserved.memoryBytes, 0);
    return Math.max(0, this.#reservedBytes - placedBytes);
  }

  /** Yields the bytes of each recorded instance without a node, until the sum reaches `#unplacedBytes`. */
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

const unplaced = ({
  memoryBytes,
  refusal,
}: NonNullable<ReturnType<typeof placeInstances>["first"]>): InstanceShortage => {
  return { memoryBytes, shortage: shortageText(refusal) };
};
