import { AwsError } from "@galatea/base";
import type { ProductionVariant } from "../definitions/index.ts";
import { Fleet, footprintBytes, derivePlacementKey, type FleetDependencies } from "../endpoints/index.ts";
import { OwnerLedger } from "../nodes/index.ts";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import {
  componentFootprint,
  type ComponentCopy,
  type ComponentRecord,
  type ComponentSpec,
} from "./component-record.ts";

/**
 * The running copies of an inference component. There is one fleet for each spec and node, and each instance of such a
 * fleet is one copy.
 */
export class ComponentCopies implements AsyncDisposable {
  readonly #dependencies: FleetDependencies;
  readonly #variant: ProductionVariant;
  readonly #configName: string;
  #record: ComponentRecord;
  readonly #fleets = new Map<string, CopyFleet>();
  readonly #ledger: OwnerLedger;

  constructor(
    record: ComponentRecord,
    of: { readonly variant: ProductionVariant; readonly configName: string },
    dependencies: FleetDependencies,
  ) {
    this.#record = record;
    this.#dependencies = dependencies;
    this.#variant = of.variant;
    this.#configName = of.configName;
    const { nodes, clock } = dependencies.fleet;
    this.#ledger = new OwnerLedger({ ownerName: `inference component "${record.name}"`, nodes, clock });
    this.reserveForRecord(record);
  }

  get endpointName(): string {
    return this.#record.endpointName;
  }

  get inServiceCount(): number {
    return [...this.fleets].reduce((sum, { inServiceCount }) => sum + inServiceCount, 0);
  }

  get fleets(): Iterable<Fleet> {
    return this.#fleets.values().map(({ fleet }) => fleet);
  }

  /** Starts the copies that were in service before the platform stopped. A copy that fails to start is retried until it is in service. */
  resume(record: ComponentRecord): void {
    for (const { copy, copyCount } of groupsOf(record.copies).values()) this.#fleetOf(record, copy).resume(copyCount);
  }

  /**
   * Sets the memory that the component reserves to that of its record. Draining copies that are no longer in the record
   * are counted separately on their nodes.
   */
  reserveForRecord(record: ComponentRecord): void {
    const { at } = record.state;
    this.#ledger.setReservation(footprintBytes(componentFootprint(record)), at === "Creating" || at === "Updating");
  }

  /**
   * Resolves when the nodes have free memory for the record's copies, or when the component's own draining copies have
   * ended.
   */
  waitForCapacity(signal: AbortSignal): Promise<void> {
    return this.#ledger.waitForCapacity(signal);
  }

  /** Resolves when a draining copy has freed memory of its node. Returns null if no copy drains. */
  whenMemoryFreed(): Promise<void> | null {
    return this.#ledger.isDraining ? this.#dependencies.fleet.nodes.whenFreed() : null;
  }

  /** Starts the recorded copies. Resolves when all of them are in service; rejects if one fails to start. */
  async start(record: ComponentRecord, signal: AbortSignal): Promise<void> {
    await Promise.all(
      [...groupsOf(record.copies).values()].map(async ({ copy, copyCount }) => {
        const fleet = this.#fleetOf(record, copy);
        await fleet.growTo(copyCount, signal);
        await fleet.inService(signal);
      }),
    );
  }

  /** Returns the recorded copies that are in service. */
  inService({ copies }: ComponentRecord): readonly ComponentCopy[] {
    const left = new Map([...this.#fleets].map(([key, { fleet }]) => [key, fleet.instanceCount]));
    return copies.filter((copy) => {
      const key = groupKeyOf(copy);
      const count = left.get(key) ?? 0;
      left.set(key, count - 1);
      return count > 0;
    });
  }

  /** Reduces each fleet to its recorded count. Resolves when removed copies have drained, or the signal aborts. */
  async reduceTo(record: ComponentRecord, signal: AbortSignal): Promise<void> {
    this.#record = record;
    this.reserveForRecord(record);
    const groups = groupsOf(record.copies);
    const desired = new Set(record.specs.map(({ number }) => number));
    await Promise.all(
      [...this.#fleets].map(async ([key, { spec, fleet }]) => {
        const copyCount = groups.get(key)?.copyCount ?? 0;
        if (copyCount > 0 || desired.has(spec)) return await fleet.shrinkTo({ instanceCount: copyCount }, signal);
        this.#fleets.delete(key);
        return await fleet.drain(signal);
      }),
    );
  }

  /**
   * Sends a request to a copy and resolves with its response. Throws AwsError with the codes and messages of
   * SageMaker's runtime.
   */
  async invoke(request: InvocationRequest): Promise<InvocationReply> {
    const { session } = request;
    const own = session === undefined ? undefined : [...this.fleets].find((each) => each.holdsSession(session));
    if (own !== undefined) return await own.invoke(request, this.inServiceCount);
    const serving = [...this.fleets].filter((fleet) => fleet.instanceCount > 0);
    const copyCount = serving.reduce((sum, { instanceCount }) => sum + instanceCount, 0);
    if (copyCount === 0) throw this.#noCapacity();
    // Fleets without a copy in service are skipped, unless no fleet has one: then the request waits for a copy to start.
    const ready = serving.filter((fleet) => fleet.canServe);
    const candidates = ready.length === 0 ? serving : ready;
    let at = this.#dependencies.random() * candidates.reduce((sum, { instanceCount }) => sum + instanceCount, 0);
    const chosen = candidates.find((fleet) => (at -= fleet.instanceCount) < 0) ?? candidates[0];
    if (chosen === undefined) throw this.#noCapacity();
    return await chosen.invoke(request, this.inServiceCount);
  }

  /** Drains a component that is deleted or has failed. */
  async drain(record: ComponentRecord, signal: AbortSignal): Promise<void> {
    this.reserveForRecord(record);
    this.#ledger.markEnding();
    await Promise.all([...this.fleets].map((fleet) => fleet.drain(signal)));
    this.#fleets.clear();
    this.#ledger[Symbol.dispose]();
  }

  /** Stops all copies because the platform shuts down. The component's record stays. */
  async shutDown(): Promise<void> {
    this.#ledger[Symbol.dispose]();
    await Promise.all([...this.fleets].map((fleet) => fleet.shutDown()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ledger[Symbol.dispose]();
    await Promise.all([...this.fleets].map((fleet) => fleet[Symbol.asyncDispose]()));
    this.#fleets.clear();
  }

  /**
   * Returns SageMaker's error for a component without copies. Clients detect from its text that the component scales
   * from zero.
   */
  #noCapacity(): AwsError {
    const [spec] = this.#record.specs;
    const own = [...this.#fleets.values()].find((each) => each.spec === spec.number)?.fleet;
    (own ?? this.#fleetOf(this.#record, { spec: spec.number, node: null })).metrics.recordNoCapacity();
    const text =
      "Inference Component has no capacity to process this request. ApplicationAutoScaling may be in-progress (if configured) or try to " +
      "increase the capacity by invoking UpdateInferenceComponentRuntimeConfig API.";
    return new AwsError("ValidationError", text);
  }

  #fleetOf(record: ComponentRecord, copy: CopyGroup): Fleet {
    const key = groupKeyOf(copy);
    const { spec: number, node } = copy;
    const found = this.#fleets.get(key);
    if (found !== undefined) return found.fleet;
    const spec = record.specs.find((each) => each.number === number);
    if (spec === undefined) throw new Error(`bug: component ${record.name} has no spec ${number}`);
    const { claim, memoryBytesMax } = spec;
    const names = {
      endpointName: record.endpointName,
      configName: this.#configName,
      fleetKey: copyFleetKey(record, copy),
      ...record.owner,
      placementKey: derivePlacementKey(`${record.arn} ${record.createdMs}`),
      component: {
        name: record.name,
        budget: { vcpuCount: Math.ceil(claim.cpuCores), memoryBytes: memoryBytesMax ?? claim.memoryBytes },
        claimBytes: claim.memoryBytes,
        node,
      },
    };
    const fleet = new Fleet({ variant: this.#variantFor(spec), model: spec.model }, names, {
      ...this.#dependencies,
      placer: this.#ledger,
    });
    this.#fleets.set(key, { spec: number, fleet });
    return fleet;
  }

  #variantFor({ model, startSeconds, downloadSeconds }: ComponentSpec): ProductionVariant {
    return {
      ...this.#variant,
      ModelName: model.name,
      ...(startSeconds === null ? {} : { ContainerStartupHealthCheckTimeoutInSeconds: startSeconds }),
      ...(downloadSeconds === null ? {} : { ModelDataDownloadTimeoutInSeconds: downloadSeconds }),
    };
  }
}

/** The spec and the node that all copies of a fleet share. The node is null if the component has no copies. */
type CopyGroup = Pick<ComponentCopy, "spec"> & { readonly node: ComponentCopy["node"] | null };

/** Returns the key of a group's fleet, which is unique among the fleets of the endpoint. */
export const copyFleetKey = ({ name }: Pick<ComponentRecord, "name">, { spec, node }: CopyGroup): string =>
  `component ${name} ${spec} ${node ?? ""}`;

interface CopyFleet {
  readonly spec: number;
  readonly fleet: Fleet;
}

const groupKeyOf = ({ spec, node }: CopyGroup) => JSON.stringify([spec, node]);

function groupsOf(copies: readonly ComponentCopy[]): ReadonlyMap<string, { copy: CopyGroup; copyCount: number }> {
  const groups = new Map<string, { copy: CopyGroup; copyCount: number }>();
  for (const copy of copies) {
    const key = groupKeyOf(copy);
    groups.set(key, { copy, copyCount: (groups.get(key)?.copyCount ?? 0) + 1 });
  }
  return groups;
}
