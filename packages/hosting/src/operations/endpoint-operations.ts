import { AwsError, type Clock, type Logger } from "@galatea/base";
import { DocumentConflict } from "../records/index.ts";
import type { HostingCatalog } from "./catalog.ts";
import type { Components } from "./component-operations.ts";
import { hostingArn, nameKey, type DeploymentConfig, type Owner } from "../definitions/index.ts";
import type { EndpointActions, ReadAlarmState, Reconciler } from "../reconcilers/index.ts";
import {
  alarmsOf,
  productionCount,
  resized,
  retaining,
  smallerUpdate,
  typeOf,
  updateTo,
  type EndpointUpdate,
  type VariantSize,
} from "./endpoint-updates.ts";
import {
  beginChange,
  checkDeployment,
  footprintDifference,
  mayStop,
  mayUpdate,
  moveEndpoint,
  newEndpoint,
  newGeneration,
  plannedFootprint,
  resizingSteps,
  serverlessDeploymentRefusal,
  stateChangeOf,
  type EndpointEvent,
  type EndpointRecord,
  type Generation,
} from "../endpoints/index.ts";
import { alreadyExists, inProgress, invalid, notFound } from "../definitions/index.ts";
import type { InstanceOwner } from "../instances/index.ts";
import { WriteReservation, type Reservations } from "../capacity/index.ts";
import type { SharedVariants } from "../reconcilers/index.ts";
import { listPage, type HostingStore, type ListingPage, type ListQuery, type Tag } from "../store/index.ts";
import { adoptableInstances } from "./adoptable-instances.ts";
import { endpointCounts } from "./endpoint-counts.ts";
import { newPlacementKey } from "./random-ids.ts";

export interface EndpointsOptions {
  readonly store: HostingStore;
  readonly reservations: Reservations;
  readonly catalog: HostingCatalog;
  readonly reconciler: Reconciler<EndpointRecord, EndpointEvent>;
  readonly actions: Pick<EndpointActions, "running">;
  readonly components: Components;
  readonly variants: SharedVariants;
  readonly clock: Clock;
  readonly alarmState: ReadAlarmState;
  readonly logger: Logger;
}

/** An endpoint's record, and the number of instances in service by `groupKey`. */
export interface EndpointDescription {
  readonly record: EndpointRecord;
  readonly inServiceCounts: ReadonlyMap<string, number>;
}

/** Returns the error of an update without capacity, extended by advice on a smaller update. */
function advised(error: unknown, moved: EndpointRecord): unknown {
  const advice = smallerUpdate(moved);
  if (advice === null || !(error instanceof AwsError) || error.code !== "ResourceLimitExceeded") return error;
  return new AwsError(error.code, `${error.message} ${advice}`);
}

/** Operations on endpoints: each is checked, reserves what it needs and writes the record, and the reconciler carries it out. */
export class Endpoints {
  readonly #options: EndpointsOptions;

  constructor(options: EndpointsOptions) {
    this.#options = options;
  }

  /** Returns the owners of instances that the platform's next run may adopt. */
  async adoptable(): Promise<readonly InstanceOwner[]> {
    return (await this.#all()).flatMap(adoptableInstances);
  }

  /** Resumes the transitions of a previous run. */
  async resume(): Promise<void> {
    const records = await this.#all();
    for (const record of records) this.#options.reconciler.resume(record);
    if (records.length > 0) this.#options.logger.info("endpoints are started again", endpointCounts(records));
  }

  /** Resolves when the endpoint is recorded as `Creating`; later failures are in its status. */
  async create(asked: {
    readonly name: string;
    readonly configName: string;
    readonly owner: Owner;
    readonly tags: readonly Tag[];
    readonly deploymentConfig: DeploymentConfig | null;
  }): Promise<EndpointRecord> {
    const { name, configName, owner, tags } = asked;
    const { endpoints } = this.#options.store.kinds;
    const key = nameKey(name);
    const arn = hostingArn("endpoint", name, owner);
    const found = await endpoints.find(key);
    if (found.at === "found") throw alreadyExists("endpoint", arn);
    using _reserved = this.#options.reservations.reserveRecord("endpoints", key);
    const generation = newGeneration(1, await this.#options.catalog.plan(configName, owner));
    this.#checkDeployment(asked.deploymentConfig, generation);
    const nowMs = this.#options.clock.epochMs();
    const { deploymentConfig } = asked;
    const made = { name, arn, owner, placementKey: newPlacementKey(), deploymentConfig };
    const record = newEndpoint(made, generation, nowMs);
    using _instances = this.#options.reservations.reserveEndpoint(key, plannedFootprint(record), typeOf(generation));
    const expects = found.at === "absent" ? "absent" : found.version;
    try {
      const changes = [endpoints.put(key, record, expects), ...this.#options.catalog.firstTags(arn, tags)];
      await this.#options.store.write(changes, { stateChange: stateChangeOf(null, record, nowMs) });
    } catch (error) {
      // Another caller has used the name meanwhile.
      if (error instanceof DocumentConflict) throw alreadyExists("endpoint", arn);
      throw error;
    }
    this.#options.reconciler.begin(record);
    return record;
  }

  /** Starts an update. It supersedes one in progress; it needs a generation to roll back to. */
  async update(asked: EndpointUpdate): Promise<EndpointRecord> {
    const { name, configName, owner } = asked;
    const record = await this.find(name, owner);
    this.#checkMayUpdate(record);
    const key = nameKey(name);
    const plan = await this.#options.catalog.plan(configName, owner);
    const deploymentConfig = asked.retainsDeployment ? record.deploymentConfig : asked.deploymentConfig;
    const next = newGeneration(0, plan);
    this.#checkDeployment(deploymentConfig, next);
    const nowMs = this.#options.clock.epochMs();
    const moved = await this.#options.variants.placing(name, () =>
      this.#recordReserved(key, (now) => {
        this.#checkMayUpdate(now);
        const [first] = now.generations;
        const number = Math.max(...now.generations.map((generation) => generation.number)) + 1;
        const numbered = retaining({ ...next, number }, first, asked);
        this.#options.components.checkGeneration(now, numbered);
        return updateTo(now, numbered, { deploymentConfig, nowMs });
      }),
    );
    if (moved === null) throw notFound("endpoint", record.arn);
    return moved;
  }

  /** Changes the weights and instance counts of some variants of an endpoint in service. */
  async resize(name: string, asked: readonly VariantSize[], owner: Owner): Promise<EndpointRecord> {
    const record = await this.find(name, owner);
    const key = nameKey(name);
    const nowMs = this.#options.clock.epochMs();
    const moved = await this.#options.variants.placing(name, () =>
      this.#recordReserved(key, (now) => {
        if (now.state.at !== "InService") throw inProgress(now);
        const sizes = resized(now.generations[0], asked);
        this.#options.components.checkSizes(now, sizes);
        return { kind: "resize", change: beginChange(nowMs, resizingSteps(now.generations[0], sizes)) };
      }),
    );
    if (moved === null) throw notFound("endpoint", record.arn);
    return moved;
  }

  /** Stops the instances of an endpoint in service; `start` starts them again. */
  async stop(name: string, owner: Owner): Promise<EndpointRecord> {
    const record = await this.find(name, owner);
    const moved = await this.#options.reconciler.transition(nameKey(name), (now) => {
      this.#options.components.checkUnused(now);
      if (!mayStop(now.state)) throw invalid(`Cannot stop endpoint "${now.arn}": it is ${now.state.at}.`);
      return { kind: "stop" };
    });
    if (moved === null) throw notFound("endpoint", record.arn);
    return moved;
  }

  async start(name: string, owner: Owner): Promise<EndpointRecord> {
    const record = await this.find(name, owner);
    const moved = await this.#recordReserved(nameKey(name), (now) => {
      if (now.state.at !== "OutOfService") {
        throw invalid(`Cannot start endpoint "${now.arn}": it is ${now.state.at}.`);
      }
      return { kind: "start" };
    });
    if (moved === null) throw notFound("endpoint", record.arn);
    return moved;
  }

  /**
   * Deletes an endpoint in any state; starts in progress are cancelled. Resolves when the deletion is recorded, before
   * it is complete.
   */
  async delete(name: string, owner: Owner): Promise<void> {
    await this.find(name, owner);
    await this.#options.variants.placing(name, () =>
      this.#options.reconciler.transition(nameKey(name), (now) => {
        if (now.state.at === "Deleting") return null;
        this.#options.components.checkUnused(now);
        return { kind: "delete" };
      }),
    );
  }

  async find(name: string, owner: Owner): Promise<EndpointRecord> {
    const found = await this.#options.store.kinds.endpoints.find(nameKey(name));
    if (found.at !== "found") throw notFound("endpoint", hostingArn("endpoint", name, owner));
    return found.value;
  }

  async describe(name: string, owner: Owner): Promise<EndpointDescription> {
    const record = await this.find(name, owner);
    return {
      record,
      inServiceCounts: this.#options.actions.running(name)?.inServiceCounts ?? new Map<string, number>(),
    };
  }

  list(question: ListQuery, nextTick: () => Promise<void>): Promise<ListingPage<EndpointRecord>> {
    return listPage(this.#options.store.kinds.endpoints, question, nextTick);
  }

  /** Records a transition after reserving the additional memory that the endpoint needs during it. */
  async #recordReserved(
    key: string,
    decide: (record: EndpointRecord) => EndpointEvent,
  ): Promise<EndpointRecord | null> {
    const { reconciler, reservations } = this.#options;
    using reserved = new WriteReservation();
    return await reconciler.transition(key, (now) => {
      const event = decide(now);
      const moved = moveEndpoint(now, event);
      const more = footprintDifference(plannedFootprint(moved), plannedFootprint(now));
      try {
        reserved.replace(() => reservations.reserveEndpoint(key, more, typeOf(moved.generations.at(-1))));
      } catch (error) {
        throw event.kind === "update" ? advised(error, moved) : error;
      }
      return event;
    });
  }

  #checkMayUpdate(record: EndpointRecord): void {
    const { state, arn } = record;
    if (state.at === "Failed") throw invalid(`Cannot update endpoint "${arn}": it has failed; delete it.`);
    if (state.at === "OutOfService") throw invalid(`Cannot update endpoint "${arn}": it is stopped; start it first.`);
    if (!mayUpdate(state)) throw inProgress(record);
  }

  #checkDeployment(config: DeploymentConfig | null, generation: Generation): void {
    if (config === null) return;
    const instanceCount = productionCount(generation);
    const isServerless = generation.variants.some(({ settled }) => settled.concurrency !== undefined);
    const refusal = isServerless ? serverlessDeploymentRefusal(config) : checkDeployment(config, instanceCount);
    if (refusal !== null) throw invalid(refusal);
    const unknown = alarmsOf(config).filter((name) => this.#options.alarmState(name) === null);
    if (unknown.length > 0) {
      throw invalid(`Could not find CloudWatch alarms that AutoRollbackConfiguration names: ${unknown.join(", ")}.`);
    }
  }

  #all(): Promise<readonly EndpointRecord[]> {
    return Array.fromAsync(this.#options.store.kinds.endpoints.all(), ({ value }) => value);
  }
}
