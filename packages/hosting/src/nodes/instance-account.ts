import { orAborted, type Clock } from "@galatea/base";
import type { InstancePlacer, NodeShare } from "./node-ledger.ts";
import type { Nodes } from "./nodes.ts";
import type { InstanceRequest } from "./place-instance.ts";

export interface InstanceAccountOptions {
  /** As a sentence names the owner. */
  readonly of: string;
  readonly nodes: Nodes;
  readonly clock: Clock;
}

interface Entry {
  readonly bytes: number;
  isLeaving: boolean;
}

/**
 * The instances that an endpoint or an inference component has on the nodes, beside what its record reserves: what the record reserves no
 * more is counted as leaving until it has answered what it holds, and is gone.
 */
export class InstanceAccount implements InstancePlacer, Disposable {
  readonly #options: InstanceAccountOptions;
  readonly #counted: Disposable;
  readonly #entries = new Set<Entry>();
  #reservedBytes = 0;
  #isMoving = false;
  #isEnding = false;
  #isOver = false;
  #sinceMs = 0;

  constructor(options: InstanceAccountOptions) {
    this.#options = options;
    const { of, nodes } = options;
    this.#counted = nodes.countLeaving(() => {
      return { of, bytes: this.#uncoveredBytes, sinceMs: this.#sinceMs, isEnding: this.#isEnding };
    });
  }

  place(request: InstanceRequest): NodeShare {
    return this.#enter(this.#options.nodes.place(request));
  }

  restore(request: InstanceRequest): NodeShare {
    return this.#enter(this.#options.nodes.restore(request));
  }

  /** Sets what the record reserves. While it moves all of that may be needed beside what leaves; otherwise it is among what is there. */
  recorded(reservedBytes: number, isMoving: boolean): void {
    this.#reservedBytes = reservedBytes;
    this.#isMoving = isMoving;
  }

  /** All of it leaves from now on. */
  ends(): void {
    this.#isEnding = true;
    this.#sinceMs = this.#options.clock.epochMs();
  }

  get isLeaving(): boolean {
    return this.#leavingBytes > 0;
  }

  /** Resolves when the nodes have room for all that is recorded, or nothing leaves here that takes any of it. */
  async room(signal: AbortSignal): Promise<void> {
    const { nodes } = this.#options;
    for (;;) {
      const freed = nodes.freed();
      if (!this.isLeaving || nodes.fits) return;
      await orAborted(freed, signal);
    }
  }

  /** Nothing is reserved any more: what is still there leaves. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    if (this.#entries.size > 0) return;
    this.#counted[Symbol.dispose]();
    this.#options.nodes.gone();
  }

  get #uncoveredBytes(): number {
    if (this.#isMoving && !this.#isOver) return this.#leavingBytes;
    const bytes = [...this.#entries].reduce((sum, entry) => sum + entry.bytes, 0);
    return this.#isOver ? bytes : Math.max(0, bytes - this.#reservedBytes);
  }

  get #leavingBytes(): number {
    return [...this.#entries].reduce((sum, { bytes, isLeaving }) => sum + (isLeaving ? bytes : 0), 0);
  }

  #enter(share: NodeShare): NodeShare {
    const entry: Entry = { bytes: share.reservedBytes, isLeaving: false };
    this.#entries.add(entry);
    return {
      ...share,
      leaves: () => {
        if (entry.isLeaving) return;
        entry.isLeaving = true;
        this.#sinceMs = this.#options.clock.epochMs();
      },
      [Symbol.dispose]: () => {
        share[Symbol.dispose]();
        this.#entries.delete(entry);
        if (this.#isOver) this[Symbol.dispose]();
        else this.#options.nodes.gone();
      },
    };
  }
}
