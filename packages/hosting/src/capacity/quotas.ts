import { Gate } from "@galatea/base";
import { footprintBytes, type Footprint, type Leaving } from "../endpoints/index.ts";
import { limitExceeded, memoryMissing, type LeavingMemory } from "../definitions/index.ts";
import type { RetirementLimits } from "./retirements.ts";
import type { HostingKinds, HostingStore } from "../store/index.ts";

export interface HostingLimits extends RetirementLimits {
  readonly modelsMax: number;
  readonly configsMax: number;
  readonly endpointsMax: number;
  /** Those that have ended among them: the oldest of these make room. */
  readonly transformJobsMax: number;
  readonly componentsMax: number;
  readonly instancesMax: number;
  /** Of all instances together: each container is a server with processes of its own, and an instance has up to fifteen. */
  readonly containersMax: number;
  /** Of this machine, for all that runs on it for endpoints and transform jobs. */
  readonly memoryBytesMax: number;
}

export const hostingLimits: HostingLimits = {
  modelsMax: 50_000,
  configsMax: 10_000,
  endpointsMax: 1000,
  transformJobsMax: 10_000,
  componentsMax: 1000,
  instancesMax: 64,
  containersMax: 128,
  memoryBytesMax: Infinity,
  retireMsMax: 120_000,
  leaveMsMax: 3_660_000,
  leavingMax: 16,
};

type CountedKind = "models" | "configs" | "endpoints" | "transformJobs" | "components";

/** What is counted of each kind, in the words of SageMaker's quotas. */
const countQuotas = {
  models: { what: "Number of models", unit: "Models", limit: "modelsMax" },
  configs: { what: "Number of endpoint configurations", unit: "Endpoint Configurations", limit: "configsMax" },
  endpoints: { what: "Number of endpoints", unit: "Endpoints", limit: "endpointsMax" },
  transformJobs: { what: "Number of transform jobs", unit: "Transform Jobs", limit: "transformJobsMax" },
  components: { what: "Number of inference components", unit: "Inference Components", limit: "componentsMax" },
} as const satisfies Readonly<Record<CountedKind & keyof HostingKinds, object>>;

interface PendingFootprint {
  readonly footprint: Footprint;
  /** What the records say that the endpoint or job uses. */
  readonly recorded: () => Footprint;
  /** That before: with other numbers this is among it. */
  readonly before: Footprint;
}

/**
 * The limits of an account. What is being written is reserved from before the limit is looked at until it is among the records, so
 * that calls at the same time do not exceed it together.
 */
export class Quotas {
  readonly #store: HostingStore;
  readonly #limits: HostingLimits;
  readonly #pendingRecords: Readonly<Record<CountedKind, Set<{ readonly key: string }>>>;
  readonly #pendingFootprints = new Set<PendingFootprint>();
  /** What runs though no record says so, for as long as it does. */
  readonly #claimed = new Set<() => Footprint>();
  /** What is taken beyond what is reserved. */
  readonly #beyond = new Set<() => number>();
  /** What no record reserves any more, and is there until it has answered what it holds. */
  readonly #leaving = new Set<() => Leaving>();
  readonly #freed = new Gate();

  constructor(store: HostingStore, limits: HostingLimits) {
    this.#store = store;
    this.#limits = limits;
    this.#pendingRecords = {
      models: new Set(),
      configs: new Set(),
      endpoints: new Set(),
      transformJobs: new Set(),
      components: new Set(),
    };
  }

  /** What the containers of all that is recorded take, what their models are promised, and what is taken beyond that. */
  get reservedBytes(): number {
    let bytes = 0;
    for (const footprint of this.#store.view.footprints()) bytes += footprintBytes(footprint);
    for (const claimed of this.#claimed) bytes += footprintBytes(claimed());
    return bytes + this.#beyondBytes;
  }

  /** Whether the machine has all of that. */
  get fits(): boolean {
    return this.reservedBytes <= this.#limits.memoryBytesMax;
  }

  /** What nothing of it has, what is being written among that; less than zero where that is more than there is. */
  get freeBytes(): number {
    let bytes = this.#limits.memoryBytesMax - this.reservedBytes;
    for (const footprint of this.#pending) bytes -= footprintBytes(footprint);
    return bytes;
  }

  /** Resolves when less may be taken of the machine than before. To be asked for before `fits`. */
  freed(): Promise<void> {
    return Promise.race([this.#freed.opened(), this.#store.view.stateChanged()]);
  }

  /** To be called when something that was counted as leaving has gone. */
  gone(): void {
    this.#freed.open();
  }

  hasRoom(kind: CountedKind): boolean {
    return this.#store.view.count(this.#store.kinds[kind]) < this.#limits[countQuotas[kind].limit];
  }

  /** Throws ResourceLimitExceeded. To be disposed when the record is written, or will not be. */
  reserveRecord(kind: CountedKind, key: string): Disposable {
    const { what, unit, limit: name } = countQuotas[kind];
    const { view, kinds } = this.#store;
    const pending = this.#pendingRecords[kind];
    const keys = new Set(
      [...pending].map((each) => each.key).filter((each) => each !== key && !view.has(kinds[kind], each)),
    );
    const [limit, used] = [this.#limits[name], view.count(kinds[kind]) + keys.size];
    if (used >= limit) throw limitExceeded({ what, unit }, { limit, used, wanted: 1 });
    return held(pending, { key });
  }

  /** As above, for what runs for a new endpoint, or one that is updated to it. */
  reserveEndpoint(key: string, footprint: Footprint, instanceType: string): Disposable {
    const recorded = () => this.#store.view.endpointFootprint(key);
    return this.#reserve(recorded, footprint, `${instanceType} for endpoint usage`);
  }

  /** As above, for what runs for a new transform job. */
  reserveTransform(key: string, footprint: Footprint, instanceType: string): Disposable {
    const recorded = () => this.#store.view.transformFootprint(key);
    return this.#reserve(recorded, footprint, `${instanceType} for transform job usage`);
  }

  /** As above, for the copies of an inference component. */
  reserveComponent(key: string, footprint: Footprint): Disposable {
    const recorded = () => this.#store.view.componentFootprint(key);
    return this.#reserve(recorded, footprint, "inference component usage");
  }

  /** As above, for what comes and goes without a record, as it is at each time. To be disposed when it has ended. */
  claim(what: () => Footprint, instanceType: string): Disposable {
    this.#check(what(), `${instanceType} for endpoint usage`);
    return held(this.#claimed, what);
  }

  /** Bytes that something was seen to take beyond its footprint, as they are at each time. To be disposed when it has ended. */
  countBeyond(bytes: () => number): Disposable {
    return held(this.#beyond, bytes);
  }

  /** What leaves, as it is at each time. To be disposed when nothing of it is left. */
  countLeaving(look: () => Leaving): Disposable {
    return held(this.#leaving, look);
  }

  get #beyondBytes(): number {
    let bytes = 0;
    for (const look of this.#leaving) bytes += look().bytes;
    for (const beyond of this.#beyond) bytes += beyond();
    return bytes;
  }

  /** What is reserved and not among the records yet. */
  get #pending(): readonly Footprint[] {
    return [...this.#pendingFootprints].flatMap(({ footprint, recorded, before }) =>
      isSame(recorded(), before) ? [footprint] : [],
    );
  }

  #leavingNow(): readonly LeavingMemory[] {
    const { retireMsMax, leaveMsMax } = this.#limits;
    return [...this.#leaving].flatMap((look) => {
      const { of, bytes, sinceMs, isEnding } = look();
      return bytes === 0 ? [] : [{ of, bytes, untilMs: sinceMs + (isEnding ? retireMsMax : leaveMsMax) }];
    });
  }

  #reserve(recorded: () => Footprint, footprint: Footprint, what: string): Disposable {
    this.#check(footprint, what);
    return held(this.#pendingFootprints, { footprint, recorded, before: recorded() });
  }

  #check(footprint: Footprint, what: string): void {
    const claimed = [...this.#claimed].map((look) => look());
    const all = [...this.#store.view.footprints(), ...claimed, ...this.#pending];
    const { instancesMax, containersMax } = this.#limits;
    const { instanceCount, containerCount } = footprint;
    const used = (of: "instanceCount" | "containerCount") => all.reduce((sum, each) => sum + each[of], 0);
    const instances = { limit: instancesMax, used: used("instanceCount"), wanted: instanceCount };
    const containers = { limit: containersMax, used: used("containerCount"), wanted: containerCount };
    if (isBeyond(instances)) throw limitExceeded({ what, unit: "Instances" }, instances);
    if (isBeyond(containers)) {
      throw limitExceeded({ what: "Number of containers of all instances", unit: "Containers" }, containers);
    }
    const memory = {
      limit: this.#limits.memoryBytesMax,
      used: all.reduce((sum, each) => sum + footprintBytes(each), this.#beyondBytes),
      wanted: footprintBytes(footprint),
    };
    if (isBeyond(memory)) throw memoryMissing(memory, this.#leavingNow());
  }
}

/** What is reserved for a write that may be decided anew: only what was reserved last holds. */
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

const isSame = (one: Footprint, other: Footprint) =>
  one.instanceCount === other.instanceCount &&
  one.containerCount === other.containerCount &&
  (one.promisedBytes ?? 0) === (other.promisedBytes ?? 0);

/** What needs nothing more is never refused, also where more is taken than there is. */
const isBeyond = ({
  limit,
  used,
  wanted,
}: {
  readonly limit: number;
  readonly used: number;
  readonly wanted: number;
}) => wanted > 0 && used + wanted > limit;

function held<Item>(items: Set<Item>, item: Item): Disposable {
  items.add(item);
  return { [Symbol.dispose]: () => void items.delete(item) };
}
