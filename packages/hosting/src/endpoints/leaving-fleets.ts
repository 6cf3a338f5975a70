import { orAborted } from "@galatea/base";
import { footprintBytes, type Footprint } from "./endpoint-record.ts";
import type { FleetParts } from "./fleet.ts";
import type { FleetSize, VariantFleet } from "./variant-fleet.ts";

export interface LeavingFleetsOptions {
  /** Whose they are, as a sentence names it. */
  readonly of: string;
  readonly fleets: () => Iterable<VariantFleet>;
  readonly parts: FleetParts;
}

/**
 * What of an endpoint's or a component's instances leaves: it takes its memory until it has answered what it holds, and is counted so long,
 * because its record reserves nothing for it any more.
 */
export class LeavingFleets implements Disposable {
  readonly #options: LeavingFleetsOptions;
  readonly #counted: Disposable;
  /** Of which nothing stays. */
  readonly #retiring = new Set<VariantFleet>();
  #reservedBytes = 0;
  #isMoving = false;
  #isEnding = false;
  #isOver = false;
  #sinceMs = 0;

  constructor(options: LeavingFleetsOptions) {
    this.#options = options;
    this.#counted = options.parts.fleet.nodes.countLeaving(() => ({
      of: options.of,
      bytes: this.#bytes,
      sinceMs: this.#sinceMs,
      isEnding: this.#isEnding,
    }));
  }

  /** What the record reserves from now on. While it moves all of that may be wanted beside what leaves; otherwise it is among what is there. */
  recorded(reserved: Footprint, isMoving: boolean): void {
    this.#reservedBytes = footprintBytes(reserved);
    this.#isMoving = isMoving;
  }

  /** Has fewer instances in a fleet. Resolves when those that leave are gone, or the signal aborts. */
  async shrink(fleet: VariantFleet, size: FleetSize, signal: AbortSignal): Promise<void> {
    const beforeBytes = fleet.leavingBytes;
    const shrunk = fleet.shrinkTo(size, signal);
    if (fleet.leavingBytes > beforeBytes) this.#sinceMs = this.#nowMs;
    await shrunk;
    this.#options.parts.fleet.nodes.gone();
  }

  /** While a fleet ends of which nothing stays, and that its owner has forgotten. */
  async retire(fleet: VariantFleet, retire: () => Promise<void>): Promise<void> {
    this.#retiring.add(fleet);
    if (fleet.reservedBytes > 0) this.#sinceMs = this.#nowMs;
    try {
      await retire();
    } finally {
      this.#retiring.delete(fleet);
      this.#options.parts.fleet.nodes.gone();
      if (this.#isOver) this[Symbol.dispose]();
    }
  }

  /** All of it leaves from now on. */
  ends(): void {
    this.#isEnding = true;
    this.#sinceMs = this.#nowMs;
  }

  get isLeaving(): boolean {
    return this.#leavingBytes > 0;
  }

  /** Resolves when all that is reserved on the nodes is there, or what leaves here takes nothing of it. */
  async room(signal: AbortSignal): Promise<void> {
    const { nodes } = this.#options.parts.fleet;
    for (;;) {
      const freed = nodes.freed();
      if (!this.isLeaving || nodes.fits) return;
      await orAborted(freed, signal);
    }
  }

  /** Nothing is reserved any more, and nothing stays; what an earlier move has let go is counted until it is gone. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    if (this.#retiring.size > 0) return;
    this.#counted[Symbol.dispose]();
    this.#options.parts.fleet.nodes.gone();
  }

  get #bytes(): number {
    if (this.#isOver) return this.#retiringBytes;
    if (this.#isMoving) return this.#leavingBytes;
    let bytes = this.#retiringBytes;
    for (const { reservedBytes } of this.#options.fleets()) bytes += reservedBytes;
    return Math.max(0, bytes - this.#reservedBytes);
  }

  get #leavingBytes(): number {
    let bytes = this.#retiringBytes;
    for (const { leavingBytes } of this.#options.fleets()) bytes += leavingBytes;
    return bytes;
  }

  get #retiringBytes(): number {
    let bytes = 0;
    for (const { reservedBytes } of this.#retiring) bytes += reservedBytes;
    return bytes;
  }

  get #nowMs(): number {
    return this.#options.parts.fleet.clock.epochMs();
  }
}
