import { AwsError, type Clock, type Logger } from "@galatea/base";
import { DocumentConflict } from "../records/index.ts";
import type { HostingCatalog } from "./catalog.ts";
import type { Components } from "./component-operations.ts";
import { hostingArn, nameKey, type DeploymentConfig, type Owner } from "../definitions/index.ts";
import type { EndpointActions, ReadAlarmState, Reconciler } from "../reconcilers/index.ts";
import {
  rollbackAlarmNames,
  productionInstanceCount,
  applyVariantSizes,
  keepVariantProperties,
  smallerUpdateAdvice,
  quotaInstanceType,
  newUpdateEvent,
  type EndpointUpdate,
  type VariantSizeChange,
} from "./endpoint-updates.ts";
import {
  newEndpointChange,
  deploymentConfigError,
  footprintDifference,
  canStopEndpoint,
  canUpdateEndpoint,
  applyEndpointEvent,
  newEndpointRecord,
  newGeneration,
  peakFootprint,
  resizeSteps,
  serverlessDeploymentError,
  detectStateChange,
  type EndpointEvent,
  type EndpointRecord,
  type Generation,
} from "../endpoints/index.ts";
import { resourceAlreadyExists, endpointInProgress, validationError, resourceNotFound } from "../definitions/index.ts";
import type { InstanceOwner } from "../instances/index.ts";
import { WriteReservation, type Reservations } from "../capacity/index.ts";
import type { SharedVariants } from "../reconcilers/index.ts";
import { listPage, type HostingStore, type ListingPage, type ListQuery, type Tag } from "../store/index.ts";
import { adoptableInstanceOwners } from "./adoptable-instances.ts";
import { endpointCountFields } from "./endpoint-counts.ts";
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

/** An endpoint's record, and the number of instances in service of each variant, by `groupKey`. */
export interface EndpointDescription {
  readonly record: EndpointRecord;
  readonly inServiceCounts: ReadonlyMap<string, number>;
}

/** Appends advice for a smaller update to a ResourceLimitExceeded error. Returns any other error unchanged. */
function withAdvice(error: unknown, moved: EndpointRecord): unknown {
  const advice = smallerUpdateAdvice(moved);
  if (advice === null || !(error instanceof AwsError) || error.code !== "ResourceLimitExceeded") return error;
  return new AwsError(error.code, `${error.message} ${advice}`);
}

/**
 * SageMaker's operations on endpoints. Each operation validates its input, reserves resources and writes the record. The reconciler then starts
 * or stops the instances.
 */
export class Endpoints {
  readonly #options: EndpointsOptions;

  constructor(options: EndpointsOptions) {
    this.#options = options;
  }

  /** Returns the owners of the instances that the platform may adopt after a restart. */
  async adoptableOwners(): Promise<readonly InstanceOwner[]> {
    return (await this.#allRecords()).flatMap(adoptableInstanceOwners);
  }

  /** Starts the endpoints again after a restart, and resumes unfinished transitions. */
  async resume(): Promise<void> {
    const records = await this.#allRecords();
    for (const record of records) this.#options.reconciler.resume(record);
    if (records.length > 0)
      this.#options.logger.info("starting the endpoints of the previous run", endpointCountFields(records));
  }

  /** Creates an endpoint. Resolves when its record is written with status `Creating`. Later failures change the status to `Failed`. */
  async create(request: {
    readonly name: string;
    readonly configName: string;
    readonly owner: Owner;
    readonly tags: readonly Tag[];
    readonly deploymentConfig: DeploymentConfig | null;
  }): Promise<EndpointRecord> {
    const { name, configName, owner, tags } = request;
    const { endpoints } = this.#options.store.kinds;
    const key = nameKey(name);
    const arn = hostingArn("endpoint", name, owner);
    const found = await endpoints.find(key);
    if (found.at === "found") throw resourceAlreadyExists("endpoint", arn);
    using _reserved = this.#options.reservations.reserveRecord("endpoints", key);
    const generation = newGeneration(1, await this.#options.catalog.planEndpoint(configName, owner));
    this.#checkDeployment(request.deploymentConfig, generation);
    const nowMs = this.#options.clock.epochMs();
    const { deploymentConfig } = request;
    const created = { name, arn, owner, placementKey: newPlacementKey(), deploymentConfig };
    const record = newEndpointRecord(created, generation, nowMs);
    using _instances = this.#options.reservations.reserveEndpoint(
      key,
      peakFootprint(record),
      quotaInstanceType(generation),
    );
    const expects = found.at === "absent" ? "absent" : found.version;
    try {
      const changes = [
        endpoints.putChange(key, record, expects),
        ...this.#options.catalog.initialTagChanges(arn, tags),
      ];
      await this.#options.store.write(changes, { stateChange: detectStateChange(null, record, nowMs) });
    } catch (error) {
      // A concurrent caller has created an endpoint with this name.
      if (error instanceof DocumentConflict) throw resourceAlreadyExists("endpoint", arn);
      throw error;
    }
    this.#options.reconciler.begin(record);
    return record;
  }

  /** Starts an update, which supersedes an update in progress. The endpoint must have been in service, so that a rollback is possible. */
  async update(request: EndpointUpdate): Promise<EndpointRecord> {
    const { name, configName, owner } = request;
    const record = await this.find(name, owner);
    this.#checkMayUpdate(record);
    const key = nameKey(name);
    const plan = await this.#options.catalog.planEndpoint(configName, owner);
    const deploymentConfig = request.retainsDeployment ? record.deploymentConfig : request.deploymentConfig;
    const next = newGeneration(0, plan);
    this.#checkDeployment(deploymentConfig, next);
    const nowMs = this.#options.clock.epochMs();
    const moved = await this.#options.variants.placing(name, () =>
      this.#recordReserved(key, (now) => {
        this.#checkMayUpdate(now);
        const [first] = now.generations;
        const number = Math.max(...now.generations.map((generation) => generation.number)) + 1;
        const numbered = keepVariantProperties({ ...next, number }, first, request);
        this.#options.components.checkGeneration(now, numbered);
        return newUpdateEvent(now, numbered, { deploymentConfig, nowMs });
      }),
    );
    if (moved === null) throw resourceNotFound("endpoint", record.arn);
    return moved;
  }

  /** Changes the weights and instance counts of some variants of an endpoint in service. */
  async resize(name: string, changes: readonly VariantSizeChange[], owner: Owner): Promise<EndpointRecord> {
    const record = await this.find(name, owner);
    const key = nameKey(name);
    const nowMs = this.#options.clock.epochMs();
    const moved = await this.#options.variants.placing(name, () =>
      this.#recordReserved(key, (now) => {
        if (now.state.at !== "InService") throw endpointInProgress(now);
        const sizes = applyVariantSizes(now.generations[0], changes);
        this.#options.components.checkVariantSizes(now, sizes);
        return { kind: "resize", change: newEndpointChange(nowMs, resizeSteps(now.generations[0], sizes)) };
      }),
    );
    if (moved === null) throw resourceNotFound("endpoint", record.arn);
    return moved;
  }

  /** Stops the instances of an endpoint in service. `start` starts them again. */
  async stop(name: string, owner: Owner): Promise<EndpointRecord> {
    const record = await this.find(name, owner);
    const moved = await this.#options.reconciler.transition(nameKey(name), (now) => {
      this.#options.components.checkNoComponents(now);
      if (!canStopEndpoint(now.state))
        throw validationError(`Cannot stop endpoint "${now.arn}": it is ${now.state.at}.`);
      return { kind: "stop" };
    });
    if (moved === null) throw resourceNotFound("endpoint", record.arn);
    return moved;
  }

  async start(name: string, owner: Owner): Promise<EndpointRecord> {
    const record = await this.find(name, owner);
    const moved = await this.#recordReserved(nameKey(name), (now) => {
      if (now.state.at !== "OutOfService") {
        throw validationError(`Cannot start endpoint "${now.arn}": it is ${now.state.at}.`);
      }
      return { kind: "start" };
    });
    if (moved === null) throw resourceNotFound("endpoint", record.arn);
    return moved;
  }

  /**
   * Starts the deletion of an endpoint in any state; instances that are starting are cancelled. Resolves when the status
   * `Deleting` is recorded; the instances drain afterwards.
   */
  async delete(name: string, owner: Owner): Promise<void> {
    await this.find(name, owner);
    await this.#options.variants.placing(name, () =>
      this.#options.reconciler.transition(nameKey(name), (now) => {
        if (now.state.at === "Deleting") return null;
        this.#options.components.checkNoComponents(now);
        return { kind: "delete" };
      }),
    );
  }

  async find(name: string, owner: Owner): Promise<EndpointRecord> {
    const found = await this.#options.store.kinds.endpoints.find(nameKey(name));
    if (found.at !== "found") throw resourceNotFound("endpoint", hostingArn("endpoint", name, owner));
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

  /** Reserves the additional resources that the endpoint needs during a transition, and records the transition. */
  async #recordReserved(
    key: string,
    decide: (record: EndpointRecord) => EndpointEvent,
  ): Promise<EndpointRecord | null> {
    const { reconciler, reservations } = this.#options;
    using reserved = new WriteReservation();
    return await reconciler.transition(key, (now) => {
      const event = decide(now);
      const moved = applyEndpointEvent(now, event);
      const more = footprintDifference(peakFootprint(moved), peakFootprint(now));
      try {
        reserved.replace(() => reservations.reserveEndpoint(key, more, quotaInstanceType(moved.generations.at(-1))));
      } catch (error) {
        throw event.kind === "update" ? withAdvice(error, moved) : error;
      }
      return event;
    });
  }

  #checkMayUpdate(record: EndpointRecord): void {
    const { state, arn } = record;
    if (state.at === "Failed") throw validationError(`Cannot update endpoint "${arn}": it has failed; delete it.`);
    if (state.at === "OutOfService")
      throw validationError(`Cannot update endpoint "${arn}": it is stopped; start it first.`);
    if (!canUpdateEndpoint(state)) throw endpointInProgress(record);
  }

  #checkDeployment(config: DeploymentConfig | null, generation: Generation): void {
    if (config === null) return;
    const instanceCount = productionInstanceCount(generation);
    const isServerless = generation.variants.some(({ settled }) => settled.concurrency !== undefined);
    const refusal = isServerless ? serverlessDeploymentError(config) : deploymentConfigError(config, instanceCount);
    if (refusal !== null) throw validationError(refusal);
    const unknown = rollbackAlarmNames(config).filter((name) => this.#options.alarmState(name) === null);
    if (unknown.length > 0) {
      throw validationError(
        `Could not find CloudWatch alarms that AutoRollbackConfiguration names: ${unknown.join(", ")}.`,
      );
    }
  }

  #allRecords(): Promise<readonly EndpointRecord[]> {
    return Array.fromAsync(this.#options.store.kinds.endpoints.all(), ({ value }) => value);
  }
}
