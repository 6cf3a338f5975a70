import { rejectOnAbort, type Clock } from "@galatea/base";
import type { InstancePlacer, NodeReservation } from "./node-ledger.ts";
import type { DrainingCount, Nodes } from "./nodes.ts";
import type { InstanceRequest } from "./place-instance.ts";

export interface OwnerLedgerOptions {
  /** The endpoint or inference component, as named in error messages. */
  readonly ownerName: string;
  readonly nodes: Nodes;
  readonly clock: Clock;
}

interface Entry {
  readonly bytes: number;
  isDraining: boolean;
}

/**
 * The memory of one endpoint's or inference component's instances. The owner's record reserves memory for the desired instances. Memory of
 * instances above that reservation counts as draining until the instances are removed.
 */
export class OwnerLedger implements InstancePlacer, Disposable {
  readonly #options: OwnerLedgerOptions;
  readonly #drainingCount: DrainingCount;
  readonly #entries = new Set<Entry>();
  #reservedBytes = 0;
  #isInTransition = false;
  #isEnding = false;
  #isDisposed = false;
  #sinceMs = 0;

  constructor(options: OwnerLedgerOptions) {
    this.#options = options;
    const { ownerName, nodes } = options;
    this.#drainingCount = nodes.countDraining(() => {
      return { owner: ownerName, bytes: this.#uncoveredBytes, sinceMs: this.#sinceMs, isEnding: this.#isEnding };
    });
  }

  place(request: InstanceRequest): NodeReservation {
    return this.#track(this.#options.nodes.place(request));
  }

  restore(request: InstanceRequest): NodeReservation {
    return this.#track(this.#options.nodes.restore(request));
  }

  /**
   * Sets the memory that the owner's record reserves. During a transition, draining instances are counted in addition to the reservation.
   * Otherwise, all existing instances are counted against the reservation.
   */
  setReservation(reservedBytes: number, isInTransition: boolean): void {
    this.#reservedBytes = reservedBytes;
    this.#isInTransition = isInTransition;
    this.#drainingCount.update();
  }

  /** Marks all instances as draining. */
  markEnding(): void {
    this.#isEnding = true;
    this.#sinceMs = this.#options.clock.epochMs();
  }

  get isDraining(): boolean {
    return this.#drainingBytes > 0;
  }

  /** Resolves when the nodes have capacity for all recorded instances, or when no instance of this owner drains. */
  async waitForCapacity(signal: AbortSignal): Promise<void> {
    const { nodes } = this.#options;
    for (;;) {
      const freed = nodes.whenFreed();
      if (!this.isDraining || nodes.hasCapacityForAll) return;
      await rejectOnAbort(freed, signal);
    }
  }

  /** Releases the reservation of the owner's record. Existing instances count as draining until they are removed. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#drainingCount.update();
    if (this.#entries.size > 0) return;
    this.#drainingCount[Symbol.dispose]();
    this.#options.nodes.notifyFreed();
  }

  get #uncoveredBytes(): number {
    if (this.#isInTransition && !this.#isDisposed) return this.#drainingBytes;
    const bytes = [...this.#entries].reduce((sum, entry) => sum + entry.bytes, 0);
    return this.#isDisposed ? bytes : Math.max(0, bytes - this.#reservedBytes);
  }

  get #drainingBytes(): number {
    return [...this.#entries].reduce((sum, { bytes, isDraining }) => sum + (isDraining ? bytes : 0), 0);
  }

  #track(share: NodeReservation): NodeReservation {
    const entry: Entry = { bytes: share.reservedBytes, isDraining: false };
    this.#entries.add(entry);
    this.#drainingCount.update();
    return {
      ...share,
      markDraining: () => {
        if (entry.isDraining) return;
        entry.isDraining = true;
        share.markDraining();
        this.#sinceMs = this.#options.clock.epochMs();
        this.#drainingCount.update();
      },
      [Symbol.dispose]: () => {
        share[Symbol.dispose]();
        this.#entries.delete(entry);
        this.#drainingCount.update();
        if (this.#isDisposed) this[Symbol.dispose]();
        else this.#options.nodes.notifyFreed();
      },
    };
  }
}
