import { rejectOnAbort, type Clock } from "@galatea/base";
import type { InstancePlacer, NodeShare } from "./node-ledger.ts";
import type { CountedDraining, Nodes } from "./nodes.ts";
import type { InstanceRequest } from "./place-instance.ts";

export interface OwnerLedgerOptions {
  /** The endpoint or inference component, as error messages name it. */
  readonly of: string;
  readonly nodes: Nodes;
  readonly clock: Clock;
}

interface Entry {
  readonly bytes: number;
  isDraining: boolean;
}

/**
 * The instances of one endpoint or inference component. Its record reserves memory for the desired instances; memory of instances above that
 * is counted as draining until their requests have ended and they are removed.
 */
export class OwnerLedger implements InstancePlacer, Disposable {
  readonly #options: OwnerLedgerOptions;
  readonly #counted: CountedDraining;
  readonly #entries = new Set<Entry>();
  #reservedBytes = 0;
  #isMoving = false;
  #isEnding = false;
  #isOver = false;
  #sinceMs = 0;

  constructor(options: OwnerLedgerOptions) {
    this.#options = options;
    const { of, nodes } = options;
    this.#counted = nodes.countDraining(() => {
      return { of, bytes: this.#uncoveredBytes, sinceMs: this.#sinceMs, isEnding: this.#isEnding };
    });
  }

  place(request: InstanceRequest): NodeShare {
    return this.#enter(this.#options.nodes.place(request));
  }

  restore(request: InstanceRequest): NodeShare {
    return this.#enter(this.#options.nodes.restore(request));
  }

  /**
   * Sets the memory that the record reserves. During a transition (`isMoving`), all of it may be needed in addition to draining instances; otherwise
   * the instances that exist use it.
   */
  recorded(reservedBytes: number, isMoving: boolean): void {
    this.#reservedBytes = reservedBytes;
    this.#isMoving = isMoving;
    this.#counted.changed();
  }

  /** Marks all instances as draining. */
  ends(): void {
    this.#isEnding = true;
    this.#sinceMs = this.#options.clock.epochMs();
  }

  get isDraining(): boolean {
    return this.#drainingBytes > 0;
  }

  /** Resolves when the nodes have room for all that is recorded, or when no instance of this owner drains any more. */
  async untilCapacity(signal: AbortSignal): Promise<void> {
    const { nodes } = this.#options;
    for (;;) {
      const freed = nodes.freed();
      if (!this.isDraining || nodes.fits) return;
      await rejectOnAbort(freed, signal);
    }
  }

  /** Ends the reservation. Instances that still exist count as draining until they are removed. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#counted.changed();
    if (this.#entries.size > 0) return;
    this.#counted[Symbol.dispose]();
    this.#options.nodes.notifyFreed();
  }

  get #uncoveredBytes(): number {
    if (this.#isMoving && !this.#isOver) return this.#drainingBytes;
    const bytes = [...this.#entries].reduce((sum, entry) => sum + entry.bytes, 0);
    return this.#isOver ? bytes : Math.max(0, bytes - this.#reservedBytes);
  }

  get #drainingBytes(): number {
    return [...this.#entries].reduce((sum, { bytes, isDraining }) => sum + (isDraining ? bytes : 0), 0);
  }

  #enter(share: NodeShare): NodeShare {
    const entry: Entry = { bytes: share.reservedBytes, isDraining: false };
    this.#entries.add(entry);
    this.#counted.changed();
    return {
      ...share,
      drains: () => {
        if (entry.isDraining) return;
        entry.isDraining = true;
        share.drains();
        this.#sinceMs = this.#options.clock.epochMs();
        this.#counted.changed();
      },
      [Symbol.dispose]: () => {
        share[Symbol.dispose]();
        this.#entries.delete(entry);
        this.#counted.changed();
        if (this.#isOver) this[Symbol.dispose]();
        else this.#options.nodes.notifyFreed();
      },
    };
  }
}
