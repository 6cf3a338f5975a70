import {
  limitExceeded,
  memoryMissing,
  noNodeLargeEnough,
  noNodeWithCapacity,
  type DrainingMemory,
} from "../definitions/index.ts";
import { footprintBytes, type Footprint } from "../endpoints/index.ts";
import { Nodes, type NodeDescription } from "../nodes/index.ts";
import type { HostingKinds, HostingStore } from "../store/index.ts";
import type { DrainLimits } from "./drain-limiter.ts";

/** The quotas of an account, independent of the nodes. */
interface AccountLimits {
  readonly modelsMax: number;
  readonly configsMax: number;
  readonly endpointsMax: number;
  /** Includes ended jobs: the oldest of these are removed first. */
  readonly transformJobsMax: number;
  readonly componentsMax: number;
  readonly instancesMax: number;
  /**
   * The limit over all instances: each container is a server with processes of its own, and an instance has up to
   * fifteen.
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

/** Names and units of the quotas, in the words of SageMaker's quotas. */
const countQuotas = {
  models: { what: "Number of models", unit: "Models", limit: "modelsMax" },
  configs: { what: "Number of endpoint configurations", unit: "Endpoint Configurations", limit: "configsMax" },
  endpoints: { what: "Number of endpoints", unit: "Endpoints", limit: "endpointsMax" },
  transformJobs: { what: "Number of transform jobs", unit: "Transform Jobs", limit: "transformJobsMax" },
  components: { what: "Number of inference components", unit: "Inference Components", limit: "componentsMax" },
} as const satisfies Readonly<Record<CountedKind & keyof HostingKinds, object>>;

interface PendingFootprint {
  readonly footprint: Footprint;
  /** Returns the recorded use of the endpoint or job. */
  readonly recorded: () => Footprint;
  /** The recorded use before the change: once the record differs, it includes this change. */
  readonly before: Footprint;
}

export interface ReservationsOptions {
  readonly store: HostingStore;
  readonly nodes: readonly NodeDescription[];
  readonly limits: AccountLimits & Pick<DrainLimits, "deletionDrainMsMax" | "updateDrainMsMax">;
}

/**
 * Reserves the account's quotas, SageMaker's service quotas, for records and instances, and the nodes' memory for instances. A change is
 * reserved from before it is checked until its record is written, so that calls at the same time do not exceed a limit together.
 */
export class Reservations {
  readonly nodes: Nodes;
  readonly #options: ReservationsOptions;
  /** Records that are being written. */
  readonly #pendingRecords = new Set<{ readonly kind: CountedKind; readonly key: string }>();
  readonly #pending = new Set<PendingFootprint>();
  /** Use without a record, evaluated at each check. */
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

  hasRoom(kind: CountedKind): boolean {
    const { store, limits } = this.#options;
    return store.view.count(store.kinds[kind]) < limits[countQuotas[kind].limit];
  }

  /**
   * Reserves a record. Throws ResourceLimitExceeded. The caller disposes the result when the record is written or given
   * up.
   */
  reserveRecord(kind: CountedKind, key: string): Disposable {
    const { store, limits } = this.#options;
    const { what, unit, limit: name } = countQuotas[kind];
    const { view, kinds } = store;
    const pendingKeys = [...this.#pendingRecords].filter((each) => each.kind === kind).map((each) => each.key);
    const newKeys = new Set(pendingKeys.filter((each) => each !== key && !view.has(kinds[kind], each)));
    const [limit, used] = [limits[name], view.count(kinds[kind]) + newKeys.size];
    if (used >= limit) throw limitExceeded({ what, unit }, { limit, used, wanted: 1 });
    return held(this.#pendingRecords, { kind, key });
  }

  /**
   * Reserves the instances of a new endpoint, or the additional ones of an update. Throws ResourceLimitExceeded. The
   * caller disposes the result when the record is written or given up.
   */
  reserveEndpoint(key: string, footprint: Footprint, instanceType: string): Disposable {
    const recorded = () => this.#options.store.view.endpointFootprint(key);
    return this.#reserve(recorded, footprint, `${instanceType} for endpoint usage`);
  }

  /** Reserves the instances of a new transform job; errors and lifetime as in `reserveEndpoint`. */
  reserveTransform(key: string, footprint: Footprint, instanceType: string): Disposable {
    const recorded = () => this.#options.store.view.transformFootprint(key);
    return this.#reserve(recorded, footprint, `${instanceType} for transform job usage`);
  }

  /** Reserves the copies of an inference component; errors and lifetime as in `reserveEndpoint`. */
  reserveComponent(key: string, footprint: Footprint): Disposable {
    const recorded = () => this.#options.store.view.componentFootprint(key);
    return this.#reserve(recorded, footprint, "inference component usage");
  }

  /**
   * Claims use that has no record and may change. Throws ResourceLimitExceeded. The caller disposes the result when the
   * use has ended.
   */
  claim(what: () => Footprint, instanceType: string): Disposable {
    this.#check(what(), `${instanceType} for endpoint usage`, "now");
    return held(this.#claimed, what);
  }

  *#claims(): Iterable<Footprint> {
    for (const look of this.#claimed) yield look();
  }

  /** Footprints of the reservations that no record includes yet. */
  *#unwritten(): Iterable<Footprint> {
    for (const { footprint, recorded, before } of this.#pending) if (isSame(recorded(), before)) yield footprint;
  }

  #reserve(recorded: () => Footprint, footprint: Footprint, what: string): Disposable {
    const before = recorded();
    this.#check(footprint, what, before.containerCount === 0 ? "now" : "drained");
    return held(this.#pending, { footprint, recorded, before });
  }

  /** `what`: the quota of instances. `when`: whether the instances start now, or when earlier ones of their owner have drained. */
  #check(footprint: Footprint, what: string, when: "now" | "drained"): void {
    this.#checkQuotas(footprint, what);
    const { memoryBytes: limit, takenBytes: used } = this.nodes;
    const memory = { limit, used, wanted: footprintBytes(footprint) };
    if (isBeyond(memory)) throw memoryMissing(memory, this.#drainingMemory());
    const counts = [...(footprint.countsByBytes ?? [])].filter(([, count]) => count > 0);
    const tooLarge = this.nodes.tooLarge(counts.map(([bytes]) => bytes));
    if (tooLarge !== null) throw noNodeLargeEnough(tooLarge);
    const withoutRoom = this.nodes.withoutRoom(addedInstances(footprint), when);
    if (withoutRoom !== null) throw noNodeWithCapacity(withoutRoom);
  }

  #checkQuotas(footprint: Footprint, what: string): void {
    const { instancesMax, containersMax } = this.#options.limits;
    const reserved = [this.#options.store.view.footprint, ...this.#claims(), ...this.#unwritten()];
    const used = (of: "instanceCount" | "containerCount") => reserved.reduce((sum, each) => sum + each[of], 0);
    const instances = { limit: instancesMax, used: used("instanceCount"), wanted: footprint.instanceCount };
    if (isBeyond(instances)) throw limitExceeded({ what, unit: "Instances" }, instances);
    const containers = { limit: containersMax, used: used("containerCount"), wanted: footprint.containerCount };
    if (isBeyond(containers)) {
      throw limitExceeded({ what: "Number of containers of all instances", unit: "Containers" }, containers);
    }
  }

  #drainingMemory(): readonly DrainingMemory[] {
    const { deletionDrainMsMax, updateDrainMsMax } = this.#options.limits;
    return this.nodes.draining.map(({ of, bytes, sinceMs, isEnding }) => {
      return { of, bytes, untilMs: sinceMs + (isEnding ? deletionDrainMsMax : updateDrainMsMax) };
    });
  }
}

/** The reservation of a write that may be retried: each attempt replaces the one before. */
export class WriteReservation implements Disposable {
  #held: Disposable | null = null;

  /** Throws ResourceLimitExceeded as `reserve` does; nothing is reserved then. */
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
  readonly wanted: number;
}

/** A change that needs nothing more is never rejected, even above the limit. */
const isBeyond = ({ limit, used, wanted }: Use): boolean => wanted > 0 && used + wanted > limit;

function bytesOf(footprints: Iterable<Footprint>): number {
  let bytes = 0;
  for (const footprint of footprints) bytes += footprintBytes(footprint);
  return bytes;
}

/**
 * Yields the size of each instance of a footprint, up to its bytes: further instances of an update start only when
 * earlier ones have ended.
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
