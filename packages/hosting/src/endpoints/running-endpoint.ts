import { AwsError } from "@galatea/base";
import type { AsyncInferenceConfig } from "../definitions/index.ts";
import { newSession, sessionNotFound, type InvocationReply, type InvocationRequest } from "../invocations/index.ts";
import type { CallWatch, Mirrors } from "../mirrors/index.ts";
import { EndpointMirrors } from "./endpoint-mirrors.ts";
import {
  footprintBytes,
  groupKey,
  isTransient,
  routesOf,
  type EndpointRecord,
  type Generation,
  type Route,
  type VariantGroup,
} from "./endpoint-record.ts";
import { plannedFootprint, stepOf } from "./endpoint-state.ts";
import { isShared } from "../definitions/index.ts";
import { failureSentence } from "./failure-sentence.ts";
import { Fleet, type FleetNames, type FleetParts } from "./fleet.ts";
import { OwnerLedger } from "../nodes/index.ts";
import { placementKeyOf, type PlacementKey } from "./model-rank.ts";
import { ServerlessFleet } from "./serverless-fleet.ts";
import { SharedInstances } from "./shared-instances.ts";
import type { VariantFleet } from "./variant-fleet.ts";
import { WeightedRotation } from "./weighted-rotation.ts";

/** A row of the routing table with what is there for it. */
interface FleetRoute extends Route {
  readonly fleet: VariantFleet;
}

export interface RunningEndpointParts extends FleetParts {
  readonly mirrors: Mirrors;
}

/** What runs for an endpoint: the fleets of its generations. Where requests go follows from its record. */
export class RunningEndpoint implements AsyncDisposable {
  readonly #name: string;
  readonly #owner: EndpointRecord["owner"];
  readonly #placementKey: PlacementKey;
  readonly #parts: FleetParts;
  readonly #mirrors: EndpointMirrors;
  readonly #fleets = new Map<string, VariantFleet>();
  readonly #ledger: OwnerLedger;
  /** Which endpoint of its name it is. */
  readonly queued: { readonly name: string; readonly createdMs: number } & EndpointRecord["owner"];
  #asyncInference: AsyncInferenceConfig | null = null;
  #routes: readonly FleetRoute[] = [];
  #rotation = new WeightedRotation<FleetRoute>([]);
  #named = new Map<string, WeightedRotation<{ readonly weight: number; readonly fleet: VariantFleet }>>();
  /** Undefined while no call is to be copied. */
  #watches: ReadonlyMap<VariantFleet, CallWatch> | undefined;

  constructor({ name, arn, owner, createdMs, placementKey }: EndpointRecord, parts: RunningEndpointParts) {
    this.#name = name;
    this.#placementKey = placementKey ?? placementKeyOf(`${arn} ${createdMs}`);
    this.queued = { name, createdMs, ...owner };
    this.#owner = owner;
    this.#parts = parts;
    this.#mirrors = new EndpointMirrors(name, parts.mirrors);
    const { nodes, clock } = parts.fleet;
    this.#ledger = new OwnerLedger({ of: `endpoint "${name}"`, nodes, clock });
  }

  get fleets(): Iterable<VariantFleet> {
    return this.#fleets.values();
  }

  /** Of each group by its key, how many instances are in service. */
  get inServiceCounts(): ReadonlyMap<string, number> {
    return new Map([...this.#fleets].map(([key, { inServiceCount }]) => [key, inServiceCount]));
  }

  /** How it takes requests from its queue; null where requests are answered at once. */
  get asyncInference(): AsyncInferenceConfig | null {
    return this.#asyncInference;
  }

  /** Of all that requests go to. */
  get inServiceCount(): number {
    return this.#routes.reduce((sum, { fleet }) => sum + fleet.inServiceCount, 0);
  }

  /** Of the first variant that requests go to. */
  get variantName(): string {
    return this.#routes[0]?.variantName ?? "";
  }

  /** For what was in service before the platform ended: tried until it is again. */
  resume(record: EndpointRecord): void {
    for (const generation of record.generations) {
      for (const { plan, observed } of generation.variants) {
        this.#fleetOf(generation, plan.variant.VariantName).resume(observed.instanceCount);
      }
    }
    this.countBy(record);
    this.#route(record);
  }

  /** Brings up what the record's step wants, or else what is settled. Rejects with SageMaker's failure sentence. */
  async bringUp(record: EndpointRecord, signal: AbortSignal): Promise<void> {
    this.countBy(record);
    const step = stepOf(record);
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    const grown = record.generations.flatMap((generation) => {
      const wanted = step?.generations.find(({ number }) => number === generation.number)?.sizes;
      return generation.variants.map(async ({ plan, settled }, index) => {
        const { instanceCount } = (step === null ? settled : wanted?.[index]) ?? { instanceCount: 0 };
        const { VariantName: name } = plan.variant;
        try {
          const fleet = this.#fleetOf(generation, name);
          if ((await fleet.growTo(instanceCount, either)) > 0) await this.#warm(fleet, either);
        } catch (error) {
          if (!either.aborted) failed.abort(new Error(failureSentence(error, name), { cause: error }));
        }
      });
    });
    await Promise.all(grown);
    either.throwIfAborted();
  }

  /** The record reserves the memory of its running instances; draining instances beyond that are counted on their nodes. */
  countBy(record: EndpointRecord): void {
    const isMoving = record.state.at !== "Deleting" && isTransient(record.state);
    this.#ledger.recorded(footprintBytes(plannedFootprint(record)), isMoving);
  }

  /** Resolves when the nodes have room for what the record says, or after the endpoint's own draining instances have ended. */
  room(signal: AbortSignal): Promise<void> {
    return this.#ledger.room(signal);
  }

  /** What the other fleets of its variant have in use of many models is loaded before requests go there. */
  async #warm(fleet: VariantFleet, signal: AbortSignal): Promise<void> {
    for (const other of this.#fleets.values()) {
      if (other === fleet || other.variantName !== fleet.variantName || other.models === null) continue;
      await fleet.models?.warmFrom(other.models, signal);
    }
  }

  /** Resolves when all that requests go to is in service; rejects where one of it does not come back. */
  async inService(signal: AbortSignal): Promise<void> {
    await Promise.all(
      this.#routes.map(async ({ fleet, variantName }) => {
        try {
          await fleet.inService(signal);
        } catch (error) {
          signal.throwIfAborted();
          throw new Error(failureSentence(error, variantName), { cause: error });
        }
      }),
    );
  }

  /**
   * Requests go where the record says from now on, and nobody has more than it says. Resolves when what has less has answered what it
   * holds, or the signal aborts.
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
        await Promise.all([this.#mirrors.leave(fleet), fleet.drain(signal)]);
      }),
    );
  }

  /** Throws AwsError with the codes and sentences of SageMaker's runtime. */
  async invoke(request: InvocationRequest): Promise<InvocationReply> {
    const { session } = request;
    if (session !== undefined && session !== newSession) return await this.#inSession(request, session);
    const chosen = this.#choose(request.targetVariant);
    const { variantName } = chosen;
    let peerCount = 0;
    let instead: VariantFleet | null = null;
    for (const { fleet } of this.#routes) {
      if (fleet.variantName !== variantName) continue;
      peerCount += fleet.inServiceCount;
      if (fleet.canServe) instead ??= fleet;
    }
    // Both of a variant's fleets serve it while an endpoint is updated.
    const fleet = chosen.canServe ? chosen : (instead ?? chosen);
    return await this.#ask(fleet, request, peerCount);
  }

  #ask(fleet: VariantFleet, request: InvocationRequest, peerCount: number): Promise<InvocationReply> {
    const watch = this.#watches?.get(fleet);
    if (watch === undefined) return fleet.invoke(request, peerCount);
    return watch.invoke(request, (watched) => fleet.invoke(watched, peerCount));
  }

  /** By whoever has the session, also while an update shifts all other requests away from it. */
  async #inSession(request: InvocationRequest, id: string): Promise<InvocationReply> {
    const { targetVariant } = request;
    const fleet = [...this.#fleets.values()].find((each) => each.holdsSession(id));
    if (fleet === undefined) throw sessionNotFound(id, this.#name);
    if (targetVariant === null || targetVariant === fleet.variantName) {
      return await this.#ask(fleet, request, fleet.inServiceCount);
    }
    const text = `Session ${id} is on variant ${fleet.variantName}, not on variant ${targetVariant}.`;
    throw new AwsError("ValidationError", text);
  }

  /** For one that gets no more requests: those in flight may end until the signal aborts; then nothing is left. */
  async drain(signal: AbortSignal): Promise<void> {
    this.#ledger.ends();
    await this.#mirrors.leaveAll();
    await Promise.all([...this.#fleets.values()].map((fleet) => fleet.drain(signal)));
    this.#fleets.clear();
    this.#ledger[Symbol.dispose]();
    this.#mirrors.flush();
  }

  /** For the platform's end: everything stops, and unpacked models stay for its next run. */
  async leave(): Promise<void> {
    this.#ledger[Symbol.dispose]();
    await this.#mirrors.leaveAll();
    await Promise.all([...this.#fleets.values()].map((fleet) => fleet.leave()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ledger[Symbol.dispose]();
    await this.#mirrors.leaveAll();
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

  #newFleet({ plan, settled }: VariantGroup, names: FleetNames): VariantFleet {
    const { concurrency } = settled;
    if (isShared(plan.variant)) return new SharedInstances(plan, names);
    if (concurrency !== undefined) return new ServerlessFleet(plan, { names, concurrency }, this.#parts);
    const parts = { ...this.#parts, placer: this.#ledger };
    return new Fleet(plan, names, plan.isShadow === true ? withoutCallers(parts) : parts);
  }

  #route(record: EndpointRecord): void {
    this.#asyncInference = record.generations[0].asyncInference ?? null;
    const byNumber = new Map(record.generations.map((generation) => [generation.number, generation]));
    const routes = routesOf(record).flatMap((route) => {
      const generation = byNumber.get(route.generation);
      return generation === undefined ? [] : [{ ...route, fleet: this.#fleetOf(generation, route.variantName) }];
    });
    this.#watches = this.#mirrors.watchesOf(record, (generation, variant) => this.#fleetOf(generation, variant));
    // What each variant is owed stays with rotations whose weights do not change: a record may change often.
    if (isSameRouting(routes, this.#routes)) return;
    this.#routes = routes;
    this.#rotation = new WeightedRotation(routes);
    const byVariant = Map.groupBy(this.#routes, ({ variantName }) => variantName);
    this.#named = new Map(
      [...byVariant].map(([name, routes]) => {
        const shares = routes.map(({ trafficShare, fleet }) => ({ weight: trafficShare, fleet }));
        return [name, new WeightedRotation(shares)];
      }),
    );
  }

  #choose(targetVariant: string | null): VariantFleet {
    if (targetVariant !== null) {
      const named = this.#named.get(targetVariant)?.next();
      if (named !== undefined && named !== null) return named.fleet;
      const text = `Variant ${targetVariant} not found for Request of endpoint ${this.#name}.`;
      throw new AwsError("ValidationError", text);
    }
    const chosen = this.#rotation.next();
    if (chosen === null) {
      throw new AwsError("ValidationError", `Every variant of endpoint ${this.#name} has weight zero.`);
    }
    return chosen.fleet;
  }
}

/** The stop time-out of a shadow variant's containers, in milliseconds: no caller waits for their executions. */
const shadowStopGraceMs = 3000;

function withoutCallers(parts: FleetParts): FleetParts {
  const { instanceLimits } = parts.fleet;
  const stopGraceMs = Math.min(instanceLimits.stopGraceMs, shadowStopGraceMs);
  return { ...parts, fleet: { ...parts.fleet, instanceLimits: { ...instanceLimits, stopGraceMs } } };
}

function isSameRouting(one: readonly FleetRoute[], other: readonly FleetRoute[]): boolean {
  return (
    one.length === other.length &&
    one.every(({ fleet, weight, trafficShare }, index) => {
      const each = other[index];
      return each?.fleet === fleet && each.weight === weight && each.trafficShare === trafficShare;
    })
  );
}
