import { AwsError, KeyedLock } from "@galatea/base";
import {
  addClaims,
  nodeForCopies,
  claimFits,
  noClaim,
  type ComponentClaim,
  type ComponentRecord,
  type CopyNode,
  type SharedInstance,
} from "../components/index.ts";
import { instanceTypeBudget } from "../nodes/index.ts";
import { isComponentVariant, nameKey, variantBudget, type ProductionVariant } from "../definitions/index.ts";
import type { EndpointRecord, FleetOptions, VariantGroup } from "../endpoints/index.ts";
import type { HostingStore } from "../store/index.ts";

/** A variant whose instances inference components share. */
export interface SharedVariant {
  readonly variant: ProductionVariant;
  readonly configName: string;
  /** The resources of an instance on each node, in the order of the nodes. */
  readonly nodes: readonly Pick<CopyNode, "id" | "has">[];
  /** The number of instances that copies may be placed on; during an update, the lower of the old and new numbers. */
  readonly instanceCount: number;
}

type PlacedOn = Pick<ComponentRecord, "endpointName" | "variantName">;

export interface SharedVariantsOptions {
  readonly store: HostingStore;
  readonly nodes: FleetOptions["nodes"];
  /**
   * Changes the variant's number of instances. Resolves when the instances are in service. Rejects with AwsError if the endpoint's state does not allow the
   * change.
   */
  readonly resize: (of: ComponentRecord, instanceCount: number, signal: AbortSignal) => Promise<void>;
}

/** The variants on which inference components run: their capacity, and a placement lock for each endpoint. */
export class SharedVariants {
  readonly #options: SharedVariantsOptions;
  readonly #placing = new KeyedLock();
  readonly #growing = new KeyedLock();

  constructor(options: SharedVariantsOptions) {
    this.#options = options;
  }

  /** Runs work while holding the endpoint's placement lock. */
  placing<Value>(endpointName: string, act: () => Promise<Value>): Promise<Value> {
    return this.#placing.run(nameKey(endpointName), act);
  }

  /** Resolves with the variant of a component; null if the endpoint or the variant does not exist. */
  async find(of: PlacedOn): Promise<SharedVariant | null> {
    const found = await this.#options.store.kinds.endpoints.find(nameKey(of.endpointName));
    return found.at === "found" ? this.of(found.value, of.variantName) : null;
  }

  of({ generations, state }: EndpointRecord, variantName: string): SharedVariant | null {
    const steps = state.at === "Updating" || state.at === "RollingBack" ? state.change.steps : [];
    let shared: SharedVariant | null = null;
    for (const { number, configName, variants } of generations) {
      const index = variants.findIndex(({ plan }) => plan.variant.VariantName === variantName);
      const group = variants[index];
      if (group === undefined || !isComponentVariant(group.plan.variant)) return null;
      const sizes = steps.flatMap(
        (step) => step.generations.find((each) => each.number === number)?.sizes[index] ?? [],
      );
      const counts = [group.settled, ...sizes].map(({ instanceCount }) => instanceCount);
      const next = { ...this.ofGroup(group, configName), instanceCount: Math.min(...counts) };
      shared = shared === null ? next : smallerOf(shared, next);
    }
    return shared;
  }

  ofGroup({ plan, settled }: Pick<VariantGroup, "plan" | "settled">, configName: string): SharedVariant {
    const { variant } = plan;
    const nodes = this.#options.nodes.all.map((node) => {
      const budget = variantBudget(variant, (type) => instanceTypeBudget(type, node));
      const { vcpuCount: cpuCores, memoryBytes, acceleratorCount = 0 } = budget;
      return { id: node.id, has: { cpuCores, memoryBytes, acceleratorCount } };
    });
    return { variant, configName, nodes, instanceCount: settled.instanceCount };
  }

  /** Returns the nodes on which more copies of a component can be placed. */
  nodesFor(record: ComponentRecord, { nodes }: SharedVariant): readonly CopyNode[] {
    return this.#options.nodes.freeBytesByNode.map(({ node: { id }, freeBytes }) => {
      const has = nodes.find((node) => node.id === id)?.has ?? noClaim;
      return nodeForCopies(record, { id, has, freeBytes });
    });
  }

  /**
   * Adds an instance for a copy that fits on no existing instance, if ManagedInstanceScaling allows it. Resolves with null if an instance was
   * added; otherwise with the reason, which is empty if scaling is not enabled or at its maximum.
   */
  async grow(record: ComponentRecord, signal: AbortSignal): Promise<string | null> {
    const before = await this.find(record);
    return await this.#growing.run(nameKey(record.endpointName), async () => {
      const shared = await this.find(record);
      if (before === null || shared === null) return "";
      // Another component has added an instance meanwhile. The caller tries to place the copy on that instance.
      if (shared.instanceCount > before.instanceCount) return null;
      const { Status: status, MaxInstanceCount: max = 0 } = shared.variant.ManagedInstanceScaling ?? {};
      if (status !== "ENABLED" || shared.instanceCount >= max) return "";
      const goal = "goal" in record.state ? record.state.goal.spec : 0;
      const claim = record.specs.find(({ number }) => number === goal)?.claim;
      if (claim === undefined || !fitsEmptyInstance(shared, claim)) return "";
      return await this.#resize(record, shared.instanceCount + 1, signal);
    });
  }

  /** Removes instances without copies, starting with the last instance, down to ManagedInstanceScaling's minimum. */
  async release(record: ComponentRecord, all: () => readonly ComponentRecord[], signal: AbortSignal): Promise<void> {
    await this.#growing.run(nameKey(record.endpointName), async () => {
      const shared = await this.find(record);
      const { Status: status, MinInstanceCount: min = 1 } = shared?.variant.ManagedInstanceScaling ?? {};
      if (shared === null || status !== "ENABLED") return;
      const desired = Math.max(min, usedInstanceCount(all(), record.variantName));
      // If the endpoint does not allow the removal now, it is repeated when the next component reaches its goal.
      if (desired < shared.instanceCount) await this.#resize(record, desired, signal);
    });
  }

  async #resize(record: ComponentRecord, instanceCount: number, signal: AbortSignal): Promise<string | null> {
    try {
      await this.#options.resize(record, instanceCount, signal);
      return null;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof AwsError) return error.message;
      throw error;
    }
  }
}

/** Returns the number of instances that must be kept: up to the last one with a copy. */
export function usedInstanceCount(components: readonly ComponentRecord[], variantName: string): number {
  const own = components.filter((each) => each.variantName === variantName);
  return Math.max(0, ...own.flatMap(({ copies }) => copies.map(({ instance }) => instance + 1)));
}

/** Returns true if the claim fits on an empty instance of at least one node. */
export const fitsEmptyInstance = ({ nodes }: Pick<SharedVariant, "nodes">, claim: ComponentClaim): boolean =>
  nodes.some(({ has }) => claimFits({ has, taken: noClaim }, claim));

/** Returns the usage of each instance of a variant: its node, the sum of claims, and the number of copies of this component. */
export function sharedInstanceUsage(
  { instanceCount }: Pick<SharedVariant, "instanceCount">,
  { name, variantName }: Pick<ComponentRecord, "name" | "variantName">,
  components: readonly ComponentRecord[],
): readonly SharedInstance[] {
  const empty = (): SharedInstance => ({ node: null, taken: noClaim, ownCount: 0 });
  const instances = Array.from({ length: instanceCount }, empty);
  for (const component of components) {
    if (component.variantName !== variantName) continue;
    const claims = new Map(component.specs.map(({ number, claim }) => [number, claim]));
    for (const { spec, instance, node = null } of component.copies) {
      const shared = instances[instance];
      if (shared === undefined) continue;
      const acquired = addClaims(shared.taken, claims.get(spec) ?? noClaim);
      const ownCount = shared.ownCount + (component.name === name ? 1 : 0);
      instances[instance] = { node, taken: acquired, ownCount };
    }
  }
  return instances;
}

function smallerOf(one: SharedVariant, other: SharedVariant): SharedVariant {
  const nodes = one.nodes.map(({ id, has }, index) => {
    const least = (of: keyof ComponentClaim) => Math.min(has[of], other.nodes[index]?.has[of] ?? has[of]);
    const lesserHas = {
      cpuCores: least("cpuCores"),
      memoryBytes: least("memoryBytes"),
      acceleratorCount: least("acceleratorCount"),
    };
    return { id, has: lesserHas };
  });
  return { ...other, nodes, instanceCount: Math.min(one.instanceCount, other.instanceCount) };
}
