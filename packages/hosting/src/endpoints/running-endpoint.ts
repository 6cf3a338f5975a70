import { AwsError } from "@galatea/base";
import type { AsyncInferenceConfig } from "../definitions/index.ts";
import { newSessionId, sessionNotFound, type InvocationReply, type InvocationRequest } from "../invocations/index.ts";
import type { MirroredCalls, Mirrors } from "../mirrors/index.ts";
import { EndpointMirrors } from "./endpoint-mirrors.ts";
import {
  footprintBytes,
  groupKey,
  isTransientState,
  routingTable,
  type EndpointRecord,
  type Generation,
  type VariantGroup,
} from "./endpoint-record.ts";
import { peakFootprint, currentStep } from "./endpoint-state.ts";
import { isComponentVariant } from "../definitions/index.ts";
import { instanceFailureReason } from "./instance-failure-reason.ts";
import type { FleetIdentity } from "./fleet-identity.ts";
import { Fleet, type FleetDependencies } from "./fleet.ts";
import { OwnerLedger } from "../nodes/index.ts";
import type { PlacementKey } from "./model-rank.ts";
import { ServerlessFleet } from "./serverless-fleet.ts";
import { SharedInstances } from "./shared-instances.ts";
import { FleetRouting } from "./fleet-routing.ts";
import type { VariantFleet } from "./variant-fleet.ts";

export interface RunningEndpointDependencies extends FleetDependencies {
  readonly mirrors: Mirrors;
}

/** A running endpoint: the fleets of all its generations. Routes requests to them as its record says. */
export class RunningEndpoint implements AsyncDisposable {
  readonly #name: string;
  readonly #owner: EndpointRecord["owner"];
  readonly #placementKey: PlacementKey;
  readonly #dependencies: FleetDependencies;
  readonly #mirrors: EndpointMirrors;
  readonly #fleets = new Map<string, VariantFleet>();
  readonly #ledger: OwnerLedger;
  /** Identity of the endpoint. The creation time distinguishes it from a later endpoint with the same name. */
  readonly queued: { readonly name: string; readonly createdMs: number } & EndpointRecord["owner"];
  #asyncInference: AsyncInferenceConfig | null = null;
  readonly #routing: FleetRouting<VariantFleet>;
  /** Objects that copy requests, by fleet; undefined while no requests are copied. */
  #watches: ReadonlyMap<VariantFleet, MirroredCalls> | undefined;

  constructor({ name, owner, createdMs, placementKey }: EndpointRecord, dependencies: RunningEndpointDependencies) {
    this.#name = name;
    this.#routing = new FleetRouting(name);
    this.#placementKey = placementKey;
    this.queued = { name, createdMs, ...owner };
    this.#owner = owner;
    this.#dependencies = dependencies;
    this.#mirrors = new EndpointMirrors(name, dependencies.mirrors);
    const { nodes, clock } = dependencies.fleet;
    this.#ledger = new OwnerLedger({ ownerName: `endpoint "${name}"`, nodes, clock });
  }

  get fleets(): Iterable<VariantFleet> {
    return this.#fleets.values();
  }

  /** Number of instances in service of each variant, by `groupKey`. */
  get inServiceCounts(): ReadonlyMap<string, number> {
    return new Map([...this.#fleets].map(([key, { inServiceCount }]) => [key, inServiceCount]));
  }

  /** Settings of an asynchronous endpoint; null for a synchronous one. */
  get asyncInference(): AsyncInferenceConfig | null {
    return this.#asyncInference;
  }

  /** Number of instances in service to which requests are routed. */
  get inServiceCount(): number {
    return this.#routing.inServiceCount;
  }

  /** Name of the first variant to which requests are routed. */
  get variantName(): string {
    return this.#routing.routes[0]?.variantName ?? "";
  }

  /** Starts the instances that were in service before the platform stopped. Failed starts are retried until they are in service. */
  resume(record: EndpointRecord): void {
    for (const generation of record.generations) {
      for (const { plan, observed } of generation.variants) {
        this.#fleetOf(generation, plan.variant.VariantName).resume(observed.instanceCount);
      }
    }
    this.countBy(record);
    this.#route(record);
  }

  /**
   * Starts the instances of the record's current step, or of its settled sizes if no change is in progress. Rejects with
   * SageMaker's failure reason.
   */
  async bringUp(record: EndpointRecord, signal: AbortSignal): Promise<void> {
    this.countBy(record);
    const step = currentStep(record);
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    const grown = record.generations.flatMap((generation) => {
      const desired = step?.generations.find(({ number }) => number === generation.number)?.sizes;
      return generation.variants.map(async ({ plan, settled }, index) => {
        const { instanceCount } = (step === null ? settled : desired?.[index]) ?? { instanceCount: 0 };
        const { VariantName: name } = plan.variant;
        try {
          const fleet = this.#fleetOf(generation, name);
          if ((await fleet.growTo(instanceCount, either)) > 0) await this.#warm(fleet, either);
        } catch (error) {
          if (!either.aborted) failed.abort(new Error(instanceFailureReason(error, name), { cause: error }));
        }
      });
    });
    await Promise.all(grown);
    either.throwIfAborted();
  }

  /**
   * Sets the memory that the endpoint reserves to that of its record. Draining instances that are no longer in the record
   * are counted separately on their nodes.
   */
  countBy(record: EndpointRecord): void {
    const isMoving = record.state.at !== "Deleting" && isTransientState(record.state);
    this.#ledger.setReservation(footprintBytes(peakFootprint(record)), isMoving);
  }

  /**
   * Resolves when the nodes have free memory for the record's instances, or when the endpoint's own draining instances
   * have ended.
   */
  untilCapacity(signal: AbortSignal): Promise<void> {
    return this.#ledger.waitForCapacity(signal);
  }

  /** Loads the models that are in use in the variant's other fleets, before requests are routed to this fleet. */
  async #warm(fleet: VariantFleet, signal: AbortSignal): Promise<void> {
    for (const other of this.#fleets.values()) {
      if (other === fleet || other.variantName !== fleet.variantName || other.models === null) continue;
      await fleet.models?.warmFrom(other.models, signal);
    }
  }

  /** Resolves when all fleets that get requests are in service; rejects if an instance keeps failing to start. */
  async inService(signal: AbortSignal): Promise<void> {
    await Promise.all(
      this.#routing.routes.map(async ({ fleet, variantName }) => {
        try {
          await fleet.inService(signal);
        } catch (error) {
          signal.throwIfAborted();
          throw new Error(instanceFailureReason(error, variantName), { cause: error });
        }
      }),
    );
  }

  /**
   * Routes requests as the record says, and drains the instances that are no longer in it. Resolves when the drained
   * instances have ended, or the signal aborts.
   */
  async follow(record: EndpointRecord, signal: AbortSignal): Promise<void> {
    this.#route(record);
    this.countBy(record);
    const observed = new Map(
      record.generations.flatMap(({ number, variants }) =>
        variants.map(({ plan, observed: size }) => [groupKey(number, plan.variant.VariantName), size] as const),
      ),
    );
    await Promise.all(
      [...this.#fleets].map(async ([key, fleet]) => {
        const size = observed.get(key);
        if (size !== undefined) return await fleet.shrinkTo(size, signal);
        this.#fleets.delete(key);
        await Promise.all([this.#mirrors.shutDown(fleet), fleet.drain(signal)]);
      }),
    );
  }

  /** Invokes the endpoint. Throws AwsError with the error codes and messages of SageMaker Runtime. */
  async invoke(request: InvocationRequest): Promise<InvocationReply> {
    const { session } = request;
    if (session !== undefined && session !== newSessionId) return await this.#inSession(request, session);
    const { fleet, peerCount } = this.#routing.choose(request.targetVariant);
    return await this.#invokeFleet(fleet, request, peerCount);
  }

  #invokeFleet(fleet: VariantFleet, request: InvocationRequest, peerCount: number): Promise<InvocationReply> {
    const watch = this.#watches?.get(fleet);
    if (watch === undefined) return fleet.invoke(request, peerCount);
    return watch.invoke(request, (watched) => fleet.invoke(watched, peerCount));
  }

  /** Sends a request to the fleet that has its session, even if an update routes all other requests to another fleet. */
  async #inSession(request: InvocationRequest, id: string): Promise<InvocationReply> {
    const { targetVariant } = request;
    const fleet = [...this.#fleets.values()].find((each) => each.holdsSession(id));
    if (fleet === undefined) throw sessionNotFound(id, this.#name);
    if (targetVariant === null || targetVariant === fleet.variantName) {
      return await this.#invokeFleet(fleet, request, fleet.inServiceCount);
    }
    const text = `Session ${id} is on variant ${fleet.variantName}, not on variant ${targetVariant}.`;
    throw new AwsError("ValidationError", text);
  }

  /**
   * Drains an endpoint that gets no new requests, and then stops all its instances. Requests in flight may finish until
   * the signal aborts.
   */
  async drain(signal: AbortSignal): Promise<void> {
    this.#ledger.markEnding();
    await this.#mirrors.drainAll();
    await Promise.all([...this.#fleets.values()].map((fleet) => fleet.drain(signal)));
    this.#fleets.clear();
    this.#ledger[Symbol.dispose]();
    this.#mirrors.flush();
  }

  /** Stops all instances because the platform shuts down. Unpacked models stay on disk for the next start. */
  async shutDown(): Promise<void> {
    this.#ledger[Symbol.dispose]();
    await this.#mirrors.drainAll();
    await Promise.all([...this.#fleets.values()].map((fleet) => fleet.shutDown()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ledger[Symbol.dispose]();
    await this.#mirrors.drainAll();
    await Promise.all([...this.#fleets.values()].map((fleet) => fleet[Symbol.asyncDispose]()));
    this.#fleets.clear();
  }

  #fleetOf(generation: Generation, variantName: string): VariantFleet {
    const key = groupKey(generation.number, variantName);
    const found = this.#fleets.get(key);
    if (found !== undefined) return found;
    const group = generation.variants.find(({ plan }) => plan.variant.VariantName === variantName);
    if (group === undefined) throw new Error(`bug: generation ${generation.number} has no variant ${variantName}`);
    const { configName } = generation;
    const names = {
      endpointName: this.#name,
      configName,
      fleetKey: key,
      placementKey: this.#placementKey,
      ...this.#owner,
    };
    const fleet = this.#newFleet(group, names);
    this.#fleets.set(key, fleet);
    return fleet;
  }

  #newFleet({ plan, settled }: VariantGroup, names: FleetIdentity): VariantFleet {
    const { concurrency } = settled;
    if (isComponentVariant(plan.variant)) return new SharedInstances(plan, names);
    if (concurrency !== undefined) return new ServerlessFleet(plan, { names, concurrency }, this.#dependencies);
    const parts = { ...this.#dependencies, placer: this.#ledger };
    return new Fleet(plan, names, plan.isShadow === true ? shadowDependencies(parts) : parts);
  }

  #route(record: EndpointRecord): void {
    this.#asyncInference = record.generations[0].asyncInference ?? null;
    const byNumber = new Map(record.generations.map((generation) => [generation.number, generation]));
    const routes = routingTable(record).flatMap((route) => {
      const generation = byNumber.get(route.generation);
      return generation === undefined ? [] : [{ ...route, fleet: this.#fleetOf(generation, route.variantName) }];
    });
    this.#watches = this.#mirrors.watchesOf(record, (generation, variant) => this.#fleetOf(generation, variant));
    this.#routing.setRoutes(routes);
  }
}

/** Time between SIGTERM and SIGKILL for the containers of a shadow variant, in milliseconds. It is short because no caller waits for them. */
const shadowStopGraceMs = 3000;

function shadowDependencies(dependencies: FleetDependencies): FleetDependencies {
  const { instanceLimits } = dependencies.fleet;
  const stopGraceMs = Math.min(instanceLimits.stopGraceMs, shadowStopGraceMs);
  return { ...dependencies, fleet: { ...dependencies.fleet, instanceLimits: { ...instanceLimits, stopGraceMs } } };
}
