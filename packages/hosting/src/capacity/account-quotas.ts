import { limitExceeded } from "../definitions/index.ts";
import type { Footprint } from "../endpoints/index.ts";
import type { HostingKinds, HostingStore } from "../store/index.ts";
import type { RetirementLimits } from "./retirements.ts";

export interface AccountLimits {
  readonly modelsMax: number;
  readonly configsMax: number;
  readonly endpointsMax: number;
  /** Those that have ended among them: the oldest of these make room. */
  readonly transformJobsMax: number;
  readonly componentsMax: number;
  readonly instancesMax: number;
  /** The limit over all instances: each container is a server with its own processes, and an instance has up to fifteen. */
  readonly containersMax: number;
}

export interface HostingLimits extends AccountLimits, RetirementLimits {}

export const hostingLimits: HostingLimits = {
  modelsMax: 50_000,
  configsMax: 10_000,
  endpointsMax: 1000,
  transformJobsMax: 10_000,
  componentsMax: 1000,
  instancesMax: 64,
  containersMax: 128,
  retireMsMax: 120_000,
  leaveMsMax: 3_660_000,
  leavingMax: 16,
};

type CountedKind = "models" | "configs" | "endpoints" | "transformJobs" | "components";

/** The unit of each quota, in the words of SageMaker's quotas. */
const countQuotas = {
  models: { what: "Number of models", unit: "Models", limit: "modelsMax" },
  configs: { what: "Number of endpoint configurations", unit: "Endpoint Configurations", limit: "configsMax" },
  endpoints: { what: "Number of endpoints", unit: "Endpoints", limit: "endpointsMax" },
  transformJobs: { what: "Number of transform jobs", unit: "Transform Jobs", limit: "transformJobsMax" },
  components: { what: "Number of inference components", unit: "Inference Components", limit: "componentsMax" },
} as const satisfies Readonly<Record<CountedKind & keyof HostingKinds, object>>;

/** SageMaker's service quotas of an account, whatever the nodes have. A record that is being written counts from before its quota is checked. */
export class AccountQuotas {
  readonly #store: HostingStore;
  readonly #limits: AccountLimits;
  readonly #pending: Readonly<Record<CountedKind, Set<{ readonly key: string }>>>;

  constructor(store: HostingStore, limits: AccountLimits) {
    this.#store = store;
    this.#limits = limits;
    this.#pending = {
      models: new Set(),
      configs: new Set(),
      endpoints: new Set(),
      transformJobs: new Set(),
      components: new Set(),
    };
  }

  hasRoom(kind: CountedKind): boolean {
    return this.#store.view.count(this.#store.kinds[kind]) < this.#limits[countQuotas[kind].limit];
  }

  /** Throws ResourceLimitExceeded. To be disposed when the record is written, or will not be. */
  reserveRecord(kind: CountedKind, key: string): Disposable {
    const { what, unit, limit: name } = countQuotas[kind];
    const { view, kinds } = this.#store;
    const pending = this.#pending[kind];
    const keys = new Set(
      [...pending].map((each) => each.key).filter((each) => each !== key && !view.has(kinds[kind], each)),
    );
    const [limit, used] = [this.#limits[name], view.count(kinds[kind]) + keys.size];
    if (used >= limit) throw limitExceeded({ what, unit }, { limit, used, wanted: 1 });
    const entry = { key };
    pending.add(entry);
    return { [Symbol.dispose]: () => void pending.delete(entry) };
  }

  /** Throws ResourceLimitExceeded where the account has no instances or containers left for `wanted`. `what`: the quota of instances. */
  check(all: readonly Footprint[], wanted: Footprint, what: string): void {
    const { instancesMax, containersMax } = this.#limits;
    const used = (of: "instanceCount" | "containerCount") => all.reduce((sum, each) => sum + each[of], 0);
    const instances = { limit: instancesMax, used: used("instanceCount"), wanted: wanted.instanceCount };
    if (isBeyond(instances)) throw limitExceeded({ what, unit: "Instances" }, instances);
    const containers = { limit: containersMax, used: used("containerCount"), wanted: wanted.containerCount };
    if (isBeyond(containers)) {
      throw limitExceeded({ what: "Number of containers of all instances", unit: "Containers" }, containers);
    }
  }
}

interface Use {
  readonly limit: number;
  readonly used: number;
  readonly wanted: number;
}

/** What needs nothing more is never refused, also where more is taken than there is. */
export const isBeyond = ({ limit, used, wanted }: Use): boolean => wanted > 0 && used + wanted > limit;
