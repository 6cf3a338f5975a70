import { limitExceeded } from "./hosting-errors.ts";
import type { HostingKinds, HostingStore } from "./store/index.ts";

export interface HostingLimits {
  readonly modelsMax: number;
  readonly configsMax: number;
  readonly endpointsMax: number;
  /** Those that have ended among them: the oldest of these make room. */
  readonly transformJobsMax: number;
  readonly instancesMax: number;
  /** How long instances that get no more requests are kept for those they have. */
  readonly retireMsMax: number;
}

export const hostingLimits: HostingLimits = {
  modelsMax: 10_000,
  configsMax: 10_000,
  endpointsMax: 500,
  transformJobsMax: 10_000,
  instancesMax: 64,
  retireMsMax: 120_000,
};

type CountedKind = "models" | "configs" | "endpoints" | "transformJobs";

/** What is counted of each kind, in the words of SageMaker's quotas. */
const countQuotas = {
  models: { what: "Number of models", unit: "Models", limit: "modelsMax" },
  configs: { what: "Number of endpoint configurations", unit: "Endpoint Configurations", limit: "configsMax" },
  endpoints: { what: "Number of endpoints", unit: "Endpoints", limit: "endpointsMax" },
  transformJobs: { what: "Number of transform jobs", unit: "Transform Jobs", limit: "transformJobsMax" },
} as const satisfies Readonly<Record<CountedKind & keyof HostingKinds, object>>;

interface PendingInstances {
  readonly count: number;
  /** What the records say that the endpoint or job uses. */
  readonly recorded: () => number;
  /** That before: with another number this is among it. */
  readonly before: number;
}

/**
 * The limits of an account. What is being written is reserved from before the limit is looked at until it is among the records, so
 * that calls at the same time do not exceed it together.
 */
export class Quotas {
  readonly #store: HostingStore;
  readonly #limits: HostingLimits;
  readonly #pendingRecords: Readonly<Record<CountedKind, Set<{ readonly key: string }>>>;
  readonly #pendingInstances = new Set<PendingInstances>();

  constructor(store: HostingStore, limits: HostingLimits) {
    this.#store = store;
    this.#limits = limits;
    this.#pendingRecords = { models: new Set(), configs: new Set(), endpoints: new Set(), transformJobs: new Set() };
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

  /** As above, for the instances of a new endpoint or those that one is updated to. */
  reserveInstances(key: string, count: number, instanceType: string): Disposable {
    const recorded = () => this.#store.view.instanceCount(key);
    return this.#reserve(recorded, count, `${instanceType} for endpoint usage`);
  }

  /** As above, for the instances of a new transform job. */
  reserveTransform(key: string, count: number, instanceType: string): Disposable {
    const recorded = () => this.#store.view.transformInstanceCount(key);
    return this.#reserve(recorded, count, `${instanceType} for transform job usage`);
  }

  #reserve(recorded: () => number, count: number, what: string): Disposable {
    const { view } = this.#store;
    let used = 0;
    for (const each of view.instanceCounts()) used += each;
    for (const pending of this.#pendingInstances) {
      if (pending.recorded() === pending.before) used += pending.count;
    }
    const { instancesMax: limit } = this.#limits;
    if (used + count > limit) {
      throw limitExceeded({ what, unit: "Instances" }, { limit, used, wanted: count });
    }
    return held(this.#pendingInstances, { count, recorded, before: recorded() });
  }
}

function held<Item>(items: Set<Item>, item: Item): Disposable {
  items.add(item);
  return { [Symbol.dispose]: () => void items.delete(item) };
}
