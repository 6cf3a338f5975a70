import {
  quotaExceeded,
  insufficientNodeMemory,
  instanceTooLarge,
  noNodeWithCapacity,
  type DrainingMemory,
} from "../definitions/index.ts";
import { footprintBytes, type Footprint } from "../endpoints/index.ts";
import { Nodes, type NodeDescription } from "../nodes/index.ts";
import type { HostingKinds, HostingStore } from "../store/index.ts";
import type { DrainLimits } from "./drain-limiter.ts";

/** The quotas of an account. They do not depend on the nodes. */
interface AccountLimits {
  readonly modelsMax: number;
  readonly configsMax: number;
  readonly endpointsMax: number;
  /** Maximum number of transform jobs, including ended ones. A new job above the maximum removes the oldest ended job. */
  readonly transformJobsMax: number;
  readonly componentsMax: number;
  readonly instancesMax: number;
  /**
   * Maximum number of containers of all instances together. An instance has up to fifteen containers, and each container
   * is a server with its own processes.
   */
  readonly containersMax: number;
}

export interface HostingLimits extends AccountLimits, DrainLimits {}

export const hostingLimits: HostingLimits = {
  modelsMax: 50_000,
  configsMax: 10_000,
  endpointsMax: 1000,
  transformJobsMax: 10_000,
  componentsMax: 1000,
  instancesMax: 64,
  containersMax: 128,
  deletionDrainMsMax: 120_000,
  updateDrainMsMax: 3_660_000,
  updateDrainsMax: 16,
};

type CountedKind = "models" | "configs" | "endpoints" | "transformJobs" | "components";

/** Quota names and units for error messages, as SageMaker spells them. */
const countQuotas = {
  models: { what: "Number of models", unit: "Models", limit: "modelsMax" },
  configs: { what: "Number of endpoint configurations", unit: "Endpoint Configurations", limit: "configsMax" },
  endpoints: { what: "Number of endpoints", unit: "Endpoints", limit: "endpointsMax" },
  transformJobs: { what: "Number of transform jobs", unit: "Transform Jobs", limit: "transformJobsMax" },
  components: { what: "Number of inference components", unit: "Inference Components", limit: "componentsMax" },
} as const satisfies Readonly<Record<CountedKind & keyof HostingKinds, object>>;

interface PendingFootprint {
  readonly footprint: Footprint;
  /** Returns the footprint that is now recorded for the endpoint, job or component. */
  readonly recorded: () => Footprint;
  /** The recorded footprint before the change. When `recorded` returns another value, the record includes the change. */
  readonly before: Footprint;
}

export interface ReservationsOptions {
  readonly store: HostingStore;
  readonly nodes: readonly NodeDescription[];
  readonly limits: AccountLimits & Pick<DrainLimits, "deletionDrainMsMax" | "updateDrainMsMax">;
}

/**
 * Reserves account quotas (SageMaker's service quotas) for records and instances, and node memory for instances. A change is reserved until
 * its record is written. Without reservations, concurrent calls could exceed a limit together.
 */
export class Reservations {
  readonly nodes: Nodes;
  readonly #options: ReservationsOptions;
  /** Records that are being written. */
  readonly #pendingRecords = new Set<{ readonly kind: CountedKind; readonly key: string }>();
  readonly #pending = new Set<PendingFootprint>();
  /** Claims, which have no record. Each check calls the functions to get the current footprints. */
  readonly #claimed = new Set<() => Footprint>();

  constructor(options: ReservationsOptions) {
    this.#options = options;
    this.nodes = new Nodes({
      nodes: options.nodes,
      recordedBytes: () => footprintBytes(options.store.view.footprint) + bytesOf(this.#claims()),
      recordedCounts: () =>
        [options.store.view.footprint, ...this.#claims()].flatMap(({ countsByBytes }) => [...(countsByBytes ?? [])]),
      pendingBytes: () => bytesOf(this.#unwritten()),
      pendingInstances: () => [...this.#unwritten()].flatMap((footprint) => [...addedInstances(footprint)]),
      recordsChanged: () => options.store.view.stateChanged(),
    });
  }

  isBelowQuota(kind: CountedKind): boolean {
    const { store, limits } = this.#options;
    return store.view.count(store.kinds[kind]) < limits[countQuotas[kind].limit];
  }

  /**
   * Reserves quota for one record. Throws ResourceLimitExceeded. The caller disposes the result when the record is
   * written or the write has failed.
   */
  reserveRecord(kind: CountedKind, key: string): Disposable {
    const { store, limits } = this.#options;
    const { what, unit, limit: name } = countQuotas[kind];
    const { view, kinds } = store;
    const pendingKeys = [...this.#pendingRecords].filter((each) => each.kind === kind).map((each) => each.key);
    const newKeys = new Set(pendingKeys.filter((each) => each !== key && !view.has(kinds[kind], each)));
    const [limit, used] = [limits[name], view.count(kinds[kind]) + newKeys.size];
    if (used >= limit) throw quotaExceeded({ what, unit }, { limit, used, requested: 1 });
    return held(this.#pendingRecords, { kind, key });
  }

  /**
   * Reserves the instances of a new endpoint, or the additional ones of an update. Throws ResourceLimitExceeded. The
   * caller disposes the result when the record is written or the write has failed.
   */
  reserveEndpoint(key: string, footprint: Footprint, instanceType: string): Disposable {
    const recorded = () => this.#options.store.view.endpointFootprint(key);
    return this.#reserve(recorded, footprint, `${instanceType} for endpoint usage`);
  }

  /** Reserves the instances of a new transform job. Errors and the lifetime of the result are as in `reserveEndpoint`. */
  reserveTransform(key: string, footprint: Footprint, instanceType: string): Disposable {
    const recorded = () => this.#options.store.view.transformFootprint(key);
    return this.#reserve(recorded, footprint, `${instanceType} for transform job usage`);
  }

  /** Reserves the copies of an inference component. Errors and the lifetime of the result are as in `reserveEndpoint`. */
  reserveComponent(key: string, footprint: Footprint): Disposable {
    const recorded = () => this.#options.store.view.componentFootprint(key);
    return this.#reserve(recorded, footprint, "inference component usage");
  }

  /**
   * Reserves a footprint that has no record and may change: `what` returns its current value. Throws
   * ResourceLimitExceeded. The caller disposes the result when the resources are no longer used.
   */
  claim(what: () => Footprint, instanceType: string): Disposable {
    this.#check(what(), `${instanceType} for endpoint usage`, "now");
    return held(this.#claimed, what);
  }

  *#claims(): Iterable<Footprint> {
    for (const look of this.#claimed) yield look();
  }

  /** Yields the footprints of reservations whose records are not written yet. */
  *#unwritten(): Iterable<Footprint> {
    for (const { footprint, recorded, before } of this.#pending) if (isSame(recorded(), before)) yield footprint;
  }

  #reserve(recorded: () => Footprint, footprint: Footprint, what: string): Disposable {
    const before = recorded();
    this.#check(footprint, what, before.containerCount === 0 ? "now" : "drained");
    return held(this.#pending, { footprint, recorded, before });
  }

  /**
   * Throws ResourceLimitExceeded if the footprint exceeds a quota or does not fit on the nodes. `what` is the name of
   * the quota. `when` is `drained` if the instances start only after the owner's earlier instances have drained.
   */
  #check(footprint: Footprint, what: string, when: "now" | "drained"): void {
    this.#checkQuotas(footprint, what);
    const { memoryBytes: limit, committedBytes: used } = this.nodes;
    const memory = { limit, used, requested: footprintBytes(footprint) };
    if (exceedsLimit(memory)) throw insufficientNodeMemory(memory, this.#drainingMemory());
    const counts = [...(footprint.countsByBytes ?? [])].filter(([, count]) => count > 0);
    const tooLarge = this.nodes.firstTooLarge(counts.map(([bytes]) => bytes));
    if (tooLarge !== null) throw instanceTooLarge(tooLarge);
    const withoutRoom = this.nodes.firstWithoutCapacity(addedInstances(footprint), when);
    if (withoutRoom !== null) throw noNodeWithCapacity(withoutRoom);
  }

  #checkQuotas(footprint: Footprint, what: string): void {
    const { instancesMax, containersMax } = this.#options.limits;
    const reserved = [this.#options.store.view.footprint, ...this.#claims(), ...this.#unwritten()];
    const used = (of: "instanceCount" | "containerCount") => reserved.reduce((sum, each) => sum + each[of], 0);
    const instances = { limit: instancesMax, used: used("instanceCount"), requested: footprint.instanceCount };
    if (exceedsLimit(instances)) throw quotaExceeded({ what, unit: "Instances" }, instances);
    const containers = { limit: containersMax, used: used("containerCount"), requested: footprint.containerCount };
    if (exceedsLimit(containers)) {
      throw quotaExceeded({ what: "Number of containers of all instances", unit: "Containers" }, containers);
    }
  }

  #drainingMemory(): readonly DrainingMemory[] {
    const { deletionDrainMsMax, updateDrainMsMax } = this.#options.limits;
    return this.nodes.draining.map(({ owner, bytes, sinceMs, isEnding }) => {
      return { owner, bytes, untilMs: sinceMs + (isEnding ? deletionDrainMsMax : updateDrainMsMax) };
    });
  }
}

/** The reservation of a write that may be retried: each attempt replaces the reservation of the previous attempt. */
export class WriteReservation implements Disposable {
  #held: Disposable | null = null;

  /** Releases the current reservation and calls `reserve` for a new one. If `reserve` throws ResourceLimitExceeded, nothing is reserved. */
  replace(reserve: () => Disposable): void {
    this[Symbol.dispose]();
    this.#held = reserve();
  }

  [Symbol.dispose](): void {
    this.#held?.[Symbol.dispose]();
    this.#held = null;
  }
}

interface Use {
  readonly limit: number;
  readonly used: number;
  readonly requested: number;
}

/** Returns whether a change exceeds a limit. A change that needs no additional resources is allowed even above the limit. */
const exceedsLimit = ({ limit, used, requested }: Use): boolean => requested > 0 && used + requested > limit;

function bytesOf(footprints: Iterable<Footprint>): number {
  let bytes = 0;
  for (const footprint of footprints) bytes += footprintBytes(footprint);
  return bytes;
}

/**
 * Yields the size of each instance that starts at once, until the sum reaches the footprint's bytes. The other instances
 * of an update start only after earlier ones have ended.
 */
function* addedInstances(footprint: Footprint): Iterable<number> {
  let leftBytes = footprintBytes(footprint);
  for (const [bytes, count] of footprint.countsByBytes ?? []) {
    for (let index = 0; index < count; index += 1) {
      leftBytes -= bytes;
      if (leftBytes < 0) return;
      yield bytes;
    }
  }
}

const isSame = (one: Footprint, other: Footprint) =>
  one.instanceCount === other.instanceCount &&
  one.containerCount === other.containerCount &&
  one.modelBytes === other.modelBytes;

function held<Item>(items: Set<Item>, item: Item): Disposable {
  items.add(item);
  return { [Symbol.dispose]: () => void items.delete(item) };
}
