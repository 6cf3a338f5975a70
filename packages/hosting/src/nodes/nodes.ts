import { AwsError, Gate } from "@galatea/base";
import type { Node, NodeDescription, NodeId } from "./node.ts";
import type { NodeMemory } from "./node-memory.ts";
import { NodeLedger, type InstancePlacer, type NodeShare } from "./node-ledger.ts";
import { placeInstance, refusalText, type InstanceRequest } from "./place-instance.ts";

/** Instances that answer what they hold, and then end. */
export interface Leaving {
  /** As a sentence names their owner. */
  readonly of: string;
  readonly bytes: number;
  /** When the last of it began to leave. */
  readonly sinceMs: number;
  /** Whether all of it ends: then it has less time than what leaves while others stay. */
  readonly isEnding: boolean;
}

export interface NodesOptions {
  /** One at least; of equals the first is preferred. */
  readonly nodes: readonly NodeDescription[];
  /** What is recorded, or claimed without a record, reserves for instances, whether they have a node or not. */
  readonly recordedBytes: () => number;
  /** What is about to be recorded reserves in addition. */
  readonly pendingBytes: () => number;
  /** Resolves when the records are others than now. */
  readonly recordsChanged: () => Promise<void>;
}

/** The nodes that instances run on, and what is taken of their memory. Instances stay where they are placed. */
export class Nodes implements InstancePlacer {
  /** What leaves belongs to accounts. */
  readonly isLeaving = false;
  readonly #options: NodesOptions;
  readonly #ledgers: readonly [NodeLedger, ...NodeLedger[]];
  /** What no record reserves any more, and is there until it has answered what it holds. */
  readonly #leaving = new Set<() => Leaving>();
  readonly #freed = new Gate();

  constructor(options: NodesOptions) {
    this.#options = options;
    const [first, ...more] = options.nodes.map((node) => new NodeLedger(node, () => this.#unplacedBytes));
    if (first === undefined) throw new Error("a platform has one node at least");
    this.#ledgers = [first, ...more];
  }

  /** As they are now, in their order. */
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

  /** For the models on a node. */
  memoryOf(id: NodeId): NodeMemory {
    return this.#ledgerOf(id).memory;
  }

  get memoryBytes(): number {
    return this.#ledgers.reduce((sum, { description }) => sum + description.capacity.memoryBytes, 0);
  }

  /** What is recorded, what leaves, and what instances take in addition to that. */
  get usedBytes(): number {
    return this.#reservedBytes + this.#ledgers.reduce((sum, { beyondBytes }) => sum + beyondBytes, 0);
  }

  /** As above, with what is about to be recorded. */
  get takenBytes(): number {
    return this.usedBytes + this.#options.pendingBytes();
  }

  /** Memory that is free on each node, in their order, with room kept for what has no node yet. */
  get freeOfEach(): readonly { readonly node: Node; readonly freeBytes: number }[] {
    const unplacedBytes = this.#unplacedBytes + this.#options.pendingBytes();
    return this.#ledgers.map(({ node, beyondBytes }) => {
      return { node, freeBytes: node.capacity.memoryBytes - node.reserved.memoryBytes - beyondBytes - unplacedBytes };
    });
  }

  /** Whether there is room for all that is recorded, beside what leaves. */
  get fits(): boolean {
    return this.usedBytes <= this.memoryBytes;
  }

  /** Counts instances that leave, as they are at each time. To be disposed when nothing of them is left. */
  countLeaving(look: () => Leaving): Disposable {
    this.#leaving.add(look);
    return { [Symbol.dispose]: () => void this.#leaving.delete(look) };
  }

  get leaving(): readonly Leaving[] {
    return [...this.#leaving].map((look) => look()).filter(({ bytes }) => bytes > 0);
  }

  /** Resolves when less may be taken than before. To be asked for before `fits`. */
  freed(): Promise<void> {
    return Promise.race([this.#freed.opened(), this.#options.recordsChanged()]);
  }

  /** To be called when less is taken than before. */
  gone(): void {
    this.#freed.open();
  }

  get #reservedBytes(): number {
    return this.#options.recordedBytes() + this.leaving.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** What has no node yet may come to any, so each keeps room for all of it. */
  get #unplacedBytes(): number {
    const placedBytes = this.#ledgers.reduce((sum, { reserved }) => sum + reserved.memoryBytes, 0);
    return Math.max(0, this.#reservedBytes - placedBytes);
  }

  #ledgerOf(id: string | null): NodeLedger {
    return this.#ledgers.find(({ description }) => description.id === id) ?? this.#ledgers[0];
  }
}
