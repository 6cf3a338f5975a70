import { memoryMissing, type LeavingMemory } from "../definitions/index.ts";
import { footprintBytes, type Footprint } from "../endpoints/index.ts";
import { Nodes, type NodeDescription } from "../nodes/index.ts";
import type { HostingStore } from "../store/index.ts";
import { isBeyond, type AccountQuotas } from "./account-quotas.ts";
import type { RetirementLimits } from "./retirements.ts";

interface PendingFootprint {
  readonly footprint: Footprint;
  /** What the records say that the endpoint or job uses. */
  readonly recorded: () => Footprint;
  /** That before: with other numbers this is among it. */
  readonly before: Footprint;
}

export interface ReservationsOptions {
  readonly store: HostingStore;
  readonly quotas: AccountQuotas;
  readonly nodes: readonly NodeDescription[];
  readonly limits: Pick<RetirementLimits, "retireMsMax" | "leaveMsMax">;
}

/**
 * What instances are reserved of the account's quotas and of the nodes' memory. What is being written is reserved from before that is
 * checked until it is among the records, so that calls at the same time do not exceed it together.
 */
export class Reservations {
  readonly nodes: Nodes;
  readonly #options: ReservationsOptions;
  readonly #pending = new Set<PendingFootprint>();
  /** What runs though no record says so, for as long as it does. */
  readonly #claimed = new Set<() => Footprint>();

  constructor(options: ReservationsOptions) {
    this.#options = options;
    this.nodes = new Nodes({
      nodes: options.nodes,
      recordedBytes: () => bytesOf(this.#recorded()),
      pendingBytes: () => bytesOf(this.#unwritten()),
      recordsChanged: () => options.store.view.stateChanged(),
    });
  }

  /** For what runs for a new endpoint, or in addition for one that is updated. Throws ResourceLimitExceeded. To be disposed when the record is written, or will not be. */
  reserveEndpoint(key: string, footprint: Footprint, instanceType: string): Disposable {
    const recorded = () => this.#options.store.view.endpointFootprint(key);
    return this.#reserve(recorded, footprint, `${instanceType} for endpoint usage`);
  }

  /** As above, for what runs for a new transform job. */
  reserveTransform(key: string, footprint: Footprint, instanceType: string): Disposable {
    const recorded = () => this.#options.store.view.transformFootprint(key);
    return this.#reserve(recorded, footprint, `${instanceType} for transform job usage`);
  }

  /** As above, for the copies of an inference component. */
  reserveComponent(key: string, footprint: Footprint): Disposable {
    const recorded = () => this.#options.store.view.componentFootprint(key);
    return this.#reserve(recorded, footprint, "inference component usage");
  }

  /** As above, for what comes and goes without a record, as it is at each time. To be disposed when it has ended. */
  claim(what: () => Footprint, instanceType: string): Disposable {
    this.#check(what(), `${instanceType} for endpoint usage`);
    return held(this.#claimed, what);
  }

  *#recorded(): Iterable<Footprint> {
    yield* this.#options.store.view.footprints();
    for (const look of this.#claimed) yield look();
  }

  /** Reservations that no record holds yet. */
  *#unwritten(): Iterable<Footprint> {
    for (const { footprint, recorded, before } of this.#pending) if (isSame(recorded(), before)) yield footprint;
  }

  #reserve(recorded: () => Footprint, footprint: Footprint, what: string): Disposable {
    this.#check(footprint, what);
    return held(this.#pending, { footprint, recorded, before: recorded() });
  }

  #check(footprint: Footprint, what: string): void {
    this.#options.quotas.check([...this.#recorded(), ...this.#unwritten()], footprint, what);
    const { memoryBytes: limit, takenBytes: used } = this.nodes;
    const memory = { limit, used, wanted: footprintBytes(footprint) };
    if (isBeyond(memory)) throw memoryMissing(memory, this.#leavingMemory());
  }

  #leavingMemory(): readonly LeavingMemory[] {
    const { retireMsMax, leaveMsMax } = this.#options.limits;
    return this.nodes.leaving.map(({ of, bytes, sinceMs, isEnding }) => {
      return { of, bytes, untilMs: sinceMs + (isEnding ? retireMsMax : leaveMsMax) };
    });
  }
}

/** The reservation of a write that may be retried: each attempt replaces the one before. */
export class WriteReservation implements Disposable {
  #held: Disposable | null = null;

  /** Throws ResourceLimitExceeded as `reserve` does, and then nothing is held. */
  replace(reserve: () => Disposable): void {
    this[Symbol.dispose]();
    this.#held = reserve();
  }

  [Symbol.dispose](): void {
    this.#held?.[Symbol.dispose]();
    this.#held = null;
  }
}

const bytesOf = (footprints: Iterable<Footprint>) =>
  [...footprints].reduce((sum, footprint) => sum + footprintBytes(footprint), 0);

const isSame = (one: Footprint, other: Footprint) =>
  one.instanceCount === other.instanceCount &&
  one.containerCount === other.containerCount &&
  (one.promisedBytes ?? 0) === (other.promisedBytes ?? 0);

function held<Item>(items: Set<Item>, item: Item): Disposable {
  items.add(item);
  return { [Symbol.dispose]: () => void items.delete(item) };
}
