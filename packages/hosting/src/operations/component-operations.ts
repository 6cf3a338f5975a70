import { AwsError } from "@galatea/base";
import { DocumentConflict } from "../records/index.ts";
import type { HostingCatalog } from "./catalog.ts";
import { sharedInstanceUsage, type ComponentActions, type Reconciler } from "../reconcilers/index.ts";
import {
  componentFootprint,
  copiesFootprint,
  isComponentInTransition,
  applyComponentEvent,
  type ComponentClaim,
  type ComponentDeployment,
  type ComponentEvent,
  type ComponentGoal,
  type ComponentRecord,
  type ComponentSpec,
  type PlacementStrategy,
} from "../components/index.ts";
import {
  hostingArn,
  nameKey,
  type CapacitySize,
  type ContainerDefinition,
  type ModelRecord,
  type Owner,
} from "../definitions/index.ts";
import {
  footprintDifference,
  type EndpointRecord,
  type FleetOptions,
  type Generation,
  type GroupSize,
} from "../endpoints/index.ts";
import { resourceAlreadyExists, validationError, resourceNotFound } from "../definitions/index.ts";
import type { InstanceOwner } from "../instances/index.ts";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import { WriteReservation, type Reservations } from "../capacity/index.ts";
import type { ReadAlarmState } from "../reconcilers/index.ts";
import type { EndpointWatch } from "./endpoint-watch.ts";
import { openWaitDeadline, waitForState, type WaitLimits } from "../waits/index.ts";
import { fitsEmptyInstance, usedInstanceCount, type SharedVariants } from "../reconcilers/index.ts";
import { adoptableCopyOwners } from "./adoptable-instances.ts";
import { listPage, type HostingStore, type ListingPage, type ListQuery, type Tag } from "../store/index.ts";

/** The Specification of a create or update request. In an update, null fields stay unchanged. */
export interface RequestedComponentSpec {
  readonly modelName: string | null;
  readonly container: ContainerDefinition | null;
  readonly claim: ComponentClaim | null;
  readonly memoryBytesMax: number | null;
  readonly strategy: PlacementStrategy | null;
  readonly startSeconds: number | null;
  readonly downloadSeconds: number | null;
  /** Instance type for which this Specification applies; absent if it applies to any type. */
  readonly instanceType?: string;
  /** Specifications for other instance types. */
  readonly others?: readonly RequestedComponentSpec[];
  readonly request: Readonly<Record<string, unknown>>;
}

export interface ComponentUpdate {
  readonly name: string;
  readonly owner: Owner;
  readonly spec: RequestedComponentSpec | null;
  readonly copyCount: number | null;
  readonly rolling: {
    readonly batch: CapacitySize;
    readonly rollbackBatch: CapacitySize | null;
    readonly waitMs: number;
    readonly limitMs: number | null;
    /** Names of the CloudWatch alarms that cause a rollback of the update. */
    readonly alarms?: readonly string[];
    /** DeploymentConfig of the request, as DescribeInferenceComponent returns it. */
    readonly request?: ComponentDeployment;
  } | null;
}

export interface ComponentsOptions {
  readonly store: HostingStore;
  readonly reservations: Reservations;
  readonly catalog: HostingCatalog;
  readonly reconciler: Reconciler<ComponentRecord, ComponentEvent>;
  readonly actions: Pick<ComponentActions, "running" | "of">;
  readonly variants: SharedVariants;
  readonly fleet: FleetOptions;
  readonly alarmState: ReadAlarmState;
  readonly watch: Pick<EndpointWatch, "stopping">;
}

const plainGoal = { batch: null, rollbackBatch: null, waitMs: 0 };

/** SageMaker's operations on inference components. */
export class Components implements AsyncDisposable {
  readonly #options: ComponentsOptions;

  constructor(options: ComponentsOptions) {
    this.#options = options;
  }

  async resume(): Promise<void> {
    const { store, reconciler } = this.#options;
    for await (const { value } of store.kinds.components.all()) reconciler.resume(value);
  }

  /** Returns the owners of the copies that the platform may adopt after a restart. */
  async adoptableOwners(): Promise<readonly InstanceOwner[]> {
    const { components } = this.#options.store.kinds;
    return (await Array.fromAsync(components.all(), ({ value }) => adoptableCopyOwners(value))).flat();
  }

  /** Creates a component. Resolves when its record is written with status `Creating`. Later failures change the status to `Failed`. */
  async create(request: {
    readonly name: string;
    readonly endpointName: string;
    /** Null if the endpoint has only one variant. */
    readonly variantName: string | null;
    readonly spec: RequestedComponentSpec;
    readonly copyCount: number;
    readonly owner: Owner;
    readonly tags: readonly Tag[];
  }): Promise<ComponentRecord> {
    const { store, reservations, catalog, reconciler, fleet } = this.#options;
    const { name, owner, copyCount } = request;
    const { components } = store.kinds;
    const key = nameKey(name);
    const arn = hostingArn("inference-component", name, owner);
    const found = await components.find(key);
    if (found.at === "found") throw resourceAlreadyExists("inference component", arn);
    const endpoint = await this.#endpoint(request.endpointName, owner);
    const variantName = this.#variantName(endpoint, request.variantName);
    const spec = await this.#specFor(request.spec, { endpoint, variantName, owner, before: null });
    this.#checkFits(endpoint, variantName, spec.claim);
    using _record = reservations.reserveRecord("components", key);
    using _copies = reservations.reserveComponent(key, copiesFootprint(spec.claim.memoryBytes, copyCount));
    const nowMs = fleet.clock.epochMs();
    const record: ComponentRecord = {
      name,
      arn,
      owner,
      createdMs: nowMs,
      modifiedMs: nowMs,
      endpointName: endpoint.name,
      variantName,
      state: { at: "Creating", goal: { ...plainGoal, deadlineMs: null, spec: spec.number, copyCount } },
      specs: [spec],
      copyCount,
      copies: [],
    };
    const expects = found.at === "absent" ? "absent" : found.version;
    // The lock prevents a concurrent update or deletion of the endpoint.
    await this.#options.variants.placing(endpoint.name, async () => {
      const now = await this.#endpoint(endpoint.name, owner);
      this.#checkFits(now, this.#variantName(now, variantName), spec.claim);
      try {
        await store.write([
          components.putChange(key, record, expects),
          ...catalog.initialTagChanges(arn, request.tags),
        ]);
      } catch (error) {
        // A concurrent caller has created a component with this name.
        if (error instanceof DocumentConflict) throw resourceAlreadyExists("inference component", arn);
        throw error;
      }
      reconciler.begin(record);
    });
    return record;
  }

  /** Starts an update of a component's specification, its number of copies, or both. */
  async update(request: ComponentUpdate): Promise<ComponentRecord> {
    const { reconciler, reservations, fleet } = this.#options;
    const { name, owner, rolling } = request;
    const record = await this.find(name, owner);
    checkMayUpdate(record);
    const endpoint = await this.#endpoint(record.endpointName, owner);
    const [before] = record.specs;
    const { variantName } = record;
    const spec =
      request.spec === null ? null : await this.#specFor(request.spec, { endpoint, variantName, owner, before });
    this.#checkAlarms(rolling?.alarms ?? []);
    if (spec !== null) this.#checkFits(endpoint, record.variantName, spec.claim);
    const copyCount = request.copyCount ?? record.copyCount;
    const nowMs = fleet.clock.epochMs();
    const limitMs = rolling?.limitMs ?? null;
    const deadlineMs = limitMs === null ? null : nowMs + limitMs;
    const { batch, rollbackBatch, waitMs } = rolling ?? plainGoal;
    const goal: ComponentGoal = {
      spec: (spec ?? before).number,
      copyCount,
      batch,
      rollbackBatch,
      waitMs,
      deadlineMs,
      ...(rolling?.alarms === undefined ? {} : { alarms: rolling.alarms }),
    };
    using reserved = new WriteReservation();
    const moved = await reconciler.transition(nameKey(name), (now) => {
      checkMayUpdate(now);
      const deployment = rolling?.request;
      const event = { kind: "update", spec, goal, ...(deployment === undefined ? {} : { deployment }) } as const;
      const more = footprintDifference(componentFootprint(applyComponentEvent(now, event)), componentFootprint(now));
      reserved.replace(() => reservations.reserveComponent(nameKey(name), more));
      return event;
    });
    if (moved === null) throw resourceNotFound("inference component", record.arn);
    return moved;
  }

  /** Starts a deletion. Resolves when the status `Deleting` is recorded; the copies drain afterwards. */
  async delete(name: string, owner: Owner): Promise<void> {
    await this.find(name, owner);
    await this.#options.reconciler.transition(nameKey(name), ({ state }) =>
      state.at === "Deleting" ? null : { kind: "delete" },
    );
  }

  async find(name: string, owner: Owner): Promise<ComponentRecord> {
    const found = await this.#options.store.kinds.components.find(nameKey(name));
    if (found.at !== "found")
      throw resourceNotFound("inference component", hostingArn("inference-component", name, owner));
    return found.value;
  }

  /** Returns the names of an endpoint's components, sorted. */
  namesOn(endpointName: string): readonly string[] {
    return this.#options.actions
      .of(endpointName)
      .map(({ name }) => name)
      .toSorted();
  }

  /** Returns the number of a component's copies in service. */
  inServiceCount(name: string): number {
    return this.#options.actions.running(name)?.inServiceCount ?? 0;
  }

  /** Lists components that match the query. */
  list(
    question: ListQuery,
    isDesired: (record: ComponentRecord) => boolean,
    nextTick: () => Promise<void>,
  ): Promise<ListingPage<ComponentRecord>> {
    return listPage(this.#options.store.kinds.components, question, nextTick, isDesired);
  }

  /** Resolves when the component is in a stable state or deleted, or when the wait ends. */
  async waitUntilStable(name: string, wait: WaitLimits): Promise<void> {
    const { store, fleet, watch } = this.#options;
    using over = openWaitDeadline(wait, watch.stopping, fleet.clock);
    const isSettled = () => {
      const at = store.view.componentState(nameKey(name));
      return at === null || !isComponentInTransition({ at });
    };
    await waitForState(store, isSettled, over.signal);
  }

  /** Invokes a component. Throws AwsError with the error codes and messages of SageMaker Runtime. */
  async invoke(endpointName: string, name: string, request: InvocationRequest): Promise<InvocationReply> {
    const running = this.#options.actions.running(name);
    const isOwn = running !== undefined && nameKey(running.endpointName) === nameKey(endpointName);
    if (isOwn) return await running.invoke(request);
    throw new AwsError("ValidationError", `Inference Component ${name} of endpoint ${endpointName} not found.`);
  }

  /** Throws if the endpoint has components: it cannot be deleted or stopped then. */
  checkNoComponents({ name, arn }: EndpointRecord): void {
    const names = this.#options.actions
      .of(name)
      .map((each) => `"${each.name}"`)
      .toSorted();
    if (names.length === 0) return;
    const shown = names.slice(0, 10).join(", ");
    throw validationError(`Endpoint "${arn}" has inference components, which have to be deleted first: ${shown}.`);
  }

  /** Throws if the new variant sizes would remove instances with copies. Call it while holding the endpoint's placement lock. */
  checkVariantSizes({ name, generations }: EndpointRecord, sizes: readonly GroupSize[]): void {
    const components = this.#options.actions.of(name);
    for (const [index, { plan }] of generations[0].variants.entries()) {
      const { VariantName: variantName } = plan.variant;
      const used = usedInstanceCount(components, variantName);
      const desired = sizes[index]?.instanceCount ?? 0;
      if (desired >= used) continue;
      throw validationError(
        `Variant "${variantName}" cannot have ${desired} instances: copies of inference components are on ${used} of them. ` +
          "Lower their copy counts, or delete some of them.",
      );
    }
  }

  /** Throws if the next generation lacks a variant that has components. Call it while holding the endpoint's placement lock. */
  checkGeneration({ name }: EndpointRecord, { variants, configName }: Generation): void {
    const components = this.#options.actions.of(name);
    for (const component of components) {
      const { variantName } = component;
      const group = variants.find(({ plan }) => plan.variant.VariantName === variantName);
      const shared = group === undefined ? null : this.#options.variants.ofGroup(group, configName);
      const used = usedInstanceCount(components, variantName);
      const instances = shared === null ? [] : sharedInstanceUsage(shared, component, components);
      const isTooMuch = instances.some(({ node, taken }) => {
        const nodes = (shared?.nodes ?? []).filter(({ id }) => node === null || id === node);
        return !fitsEmptyInstance({ nodes }, taken);
      });
      const type = component.specs[0].request["InstanceType"];
      if (typeof type === "string" && group !== undefined && group.plan.variant.InstanceType !== type) {
        throw validationError(
          `Inference component "${component.name}" has its specification for ${type}, and configuration "${configName}" has another type: ` +
            "delete the component, or update it with a specification without InstanceType, first.",
        );
      }
      if (group?.plan.variant.ModelName === "" && used <= instances.length && !isTooMuch) continue;
      throw validationError(
        `Inference component "${component.name}" is on variant "${variantName}", on which configuration "${configName}" cannot hold its copies.`,
      );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#options.reconciler[Symbol.asyncDispose]();
  }

  async #endpoint(name: string, owner: Owner): Promise<EndpointRecord> {
    const found = await this.#options.store.kinds.endpoints.find(nameKey(name));
    if (found.at !== "found") throw resourceNotFound("endpoint", hostingArn("endpoint", name, owner));
    const { state, arn } = found.value;
    if (state.at === "InService" || state.at === "Updating" || state.at === "RollingBack") return found.value;
    throw validationError(`Endpoint "${arn}" is ${state.at}; inference components need one that is InService.`);
  }

  #variantName(endpoint: EndpointRecord, requestedName: string | null): string {
    const names = endpoint.generations[0].variants.map(({ plan }) => plan.variant.VariantName);
    const [only] = names;
    const name = requestedName ?? (names.length === 1 ? only : undefined);
    if (name === undefined) throw validationError("VariantName must be given: the endpoint has several variants.");
    if (!names.includes(name)) throw validationError(`Could not find variant "${name}" of endpoint "${endpoint.arn}".`);
    if (this.#options.variants.of(endpoint, name) === null) {
      throw validationError(
        `Variant "${name}" of endpoint "${endpoint.arn}" has a model: inference components need a variant without ModelName.`,
      );
    }
    return name;
  }

  /** Throws if the claim exceeds the resources of an empty instance. */
  #checkFits(endpoint: EndpointRecord, variantName: string, claim: ComponentClaim): void {
    const shared = this.#options.variants.of(endpoint, variantName);
    if (shared === null || fitsEmptyInstance(shared, claim)) return;
    const { nodes, variant } = shared;
    const { has } = nodes.reduce((one, other) => (one.has.memoryBytes < other.has.memoryBytes ? other : one));
    throw validationError(
      `The compute resource requirements are more than an instance of ${variant.InstanceType} has on this platform: ` +
        `${has.cpuCores} CPU cores, ${Math.floor(has.memoryBytes / 2 ** 20)} MiB of memory, ${has.acceleratorCount} accelerators.`,
    );
  }

  #checkAlarms(names: readonly string[]): void {
    const unknown = names.filter((name) => this.#options.alarmState(name) === null);
    if (unknown.length === 0) return;
    throw validationError(
      `Could not find CloudWatch alarms that AutoRollbackConfiguration names: ${unknown.join(", ")}.`,
    );
  }

  /** Returns the specification of the request that applies to the variant's instance type. */
  async #specFor(
    requested: RequestedComponentSpec,
    of: {
      readonly endpoint: EndpointRecord;
      readonly variantName: string;
      readonly owner: Owner;
      readonly before: ComponentSpec | null;
    },
  ): Promise<ComponentSpec> {
    const shared = this.#options.variants.of(of.endpoint, of.variantName);
    const type = shared?.variant.InstanceType;
    const { others = [] } = requested;
    const all = [requested, ...others];
    const fitting = all.find(({ instanceType }) => instanceType === undefined || instanceType === type);
    if (fitting === undefined) {
      const types = all.map(({ instanceType }) => instanceType).join(", ");
      throw validationError(
        `Variant "${of.variantName}" has instances of ${type}, and the specifications are for ${types}: give one with this InstanceType.`,
      );
    }
    const spec = await this.#spec(fitting, of);
    return others.length === 0 ? spec : { ...spec, alternatives: all.map(({ request }) => request) };
  }

  async #spec(
    requested: RequestedComponentSpec,
    { owner, before }: { readonly owner: Owner; readonly before: ComponentSpec | null },
  ): Promise<ComponentSpec> {
    const model = (await this.#model(requested, owner)) ?? before?.model;
    const claim = requested.claim ?? before?.claim;
    if (model === undefined) throw validationError("Either ModelName or Container must be given in the Specification.");
    if (claim === undefined) throw validationError("ComputeResourceRequirements must be given in the Specification.");
    return {
      number: (before?.number ?? 0) + 1,
      model,
      isNamed: requested.modelName !== null || (requested.container === null && before?.isNamed === true),
      claim,
      memoryBytesMax: requested.claim === null ? (before?.memoryBytesMax ?? null) : requested.memoryBytesMax,
      strategy: requested.strategy ?? before?.strategy ?? "SPREAD",
      startSeconds: requested.startSeconds ?? before?.startSeconds ?? null,
      downloadSeconds: requested.downloadSeconds ?? before?.downloadSeconds ?? null,
      request: { ...before?.request, ...requested.request },
    };
  }

  /** Returns the requested model, or one made from the requested container. Null if the request has neither. */
  async #model({ modelName, container }: RequestedComponentSpec, owner: Owner): Promise<ModelRecord | null> {
    if (modelName !== null && container !== null)
      throw validationError("ModelName and Container cannot be used together.");
    const shared = { name: "", arn: "", createdMs: 0, owner, executionMode: "Serial", request: {} } as const;
    if (container !== null) return { ...shared, containers: [container] };
    if (modelName === null) return null;
    const model = await this.#options.catalog.model(modelName, owner);
    if (model.containers.length === 1 && model.containers[0]?.Mode !== "MultiModel") return model;
    throw validationError(
      `Model "${model.arn}" cannot be an inference component: it needs one container, with one model.`,
    );
  }
}

function checkMayUpdate({ state, arn }: ComponentRecord): void {
  if (state.at === "InService") return;
  if (state.at === "Failed")
    throw validationError(`Cannot update inference component "${arn}": it has failed; delete it.`);
  throw validationError(`Cannot update in-progress inference component "${arn}".`);
}
