import { AwsError } from "@galatea/base";
import { DocumentConflict } from "../records/index.ts";
import type { HostingCatalog } from "./catalog.ts";
import { sharedInstances, type ComponentActions, type Reconciler } from "../reconcilers/index.ts";
import {
  componentFootprint,
  copiesFootprint,
  isMoving,
  moveComponent,
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
import { alreadyExists, invalid, notFound } from "../definitions/index.ts";
import type { InstanceOwner } from "../instances/index.ts";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import { WriteReservation, type Reservations } from "../capacity/index.ts";
import type { ReadAlarmState } from "../reconcilers/index.ts";
import type { EndpointWatch } from "./endpoint-watch.ts";
import { openWait, untilStable, type Wait } from "../waits/index.ts";
import { fitsSomewhere, usedCount, type SharedVariants } from "../reconcilers/index.ts";
import { adoptableCopies } from "./adoptable-instances.ts";
import { listPage, type HostingStore, type ListingPage, type ListQuery, type Tag } from "../store/index.ts";

/** A Specification as requested; in an update, missing fields stay unchanged. */
export interface RequestedComponentSpec {
  readonly modelName: string | null;
  readonly container: ContainerDefinition | null;
  readonly claim: ComponentClaim | null;
  readonly memoryBytesMax: number | null;
  readonly strategy: PlacementStrategy | null;
  readonly startSeconds: number | null;
  readonly downloadSeconds: number | null;
  /** The instance type that it is for; any if absent. */
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
    /** The CloudWatch alarms that roll the update back. */
    readonly alarms?: readonly string[];
    /** The request's DeploymentConfig. */
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

/** Operations on inference components, and their records. */
export class Components implements AsyncDisposable {
  readonly #options: ComponentsOptions;

  constructor(options: ComponentsOptions) {
    this.#options = options;
  }

  async resume(): Promise<void> {
    const { store, reconciler } = this.#options;
    for await (const { value } of store.kinds.components.all()) reconciler.resume(value);
  }

  /** Returns the owners of copies that the platform's next run may adopt. */
  async adoptable(): Promise<readonly InstanceOwner[]> {
    const { components } = this.#options.store.kinds;
    return (await Array.fromAsync(components.all(), ({ value }) => adoptableCopies(value))).flat();
  }

  /** Resolves when the component is recorded as `Creating`; later failures are in its status. */
  async create(asked: {
    readonly name: string;
    readonly endpointName: string;
    /** Null for the only variant of the endpoint. */
    readonly variantName: string | null;
    readonly spec: RequestedComponentSpec;
    readonly copyCount: number;
    readonly owner: Owner;
    readonly tags: readonly Tag[];
  }): Promise<ComponentRecord> {
    const { store, reservations, catalog, reconciler, fleet } = this.#options;
    const { name, owner, copyCount } = asked;
    const { components } = store.kinds;
    const key = nameKey(name);
    const arn = hostingArn("inference-component", name, owner);
    const found = await components.find(key);
    if (found.at === "found") throw alreadyExists("inference component", arn);
    const endpoint = await this.#endpoint(asked.endpointName, owner);
    const variantName = this.#variantName(endpoint, asked.variantName);
    const spec = await this.#specFor(asked.spec, { endpoint, variantName, owner, before: null });
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
    // Prevents a concurrent deletion or update of the endpoint.
    await this.#options.variants.placing(endpoint.name, async () => {
      const now = await this.#endpoint(endpoint.name, owner);
      this.#checkFits(now, this.#variantName(now, variantName), spec.claim);
      try {
        await store.write([components.put(key, record, expects), ...catalog.firstTags(arn, asked.tags)]);
      } catch (error) {
        // Another caller has used the name meanwhile.
        if (error instanceof DocumentConflict) throw alreadyExists("inference component", arn);
        throw error;
      }
      reconciler.begin(record);
    });
    return record;
  }

  /** Changes the spec, the number of copies, or both. */
  async update(asked: ComponentUpdate): Promise<ComponentRecord> {
    const { reconciler, reservations, fleet } = this.#options;
    const { name, owner, rolling } = asked;
    const record = await this.find(name, owner);
    checkMayUpdate(record);
    const endpoint = await this.#endpoint(record.endpointName, owner);
    const [before] = record.specs;
    const { variantName } = record;
    const spec = asked.spec === null ? null : await this.#specFor(asked.spec, { endpoint, variantName, owner, before });
    this.#checkAlarms(rolling?.alarms ?? []);
    if (spec !== null) this.#checkFits(endpoint, record.variantName, spec.claim);
    const copyCount = asked.copyCount ?? record.copyCount;
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
      const more = footprintDifference(componentFootprint(moveComponent(now, event)), componentFootprint(now));
      reserved.replace(() => reservations.reserveComponent(nameKey(name), more));
      return event;
    });
    if (moved === null) throw notFound("inference component", record.arn);
    return moved;
  }

  /** Resolves when the deletion is recorded, before it is complete. */
  async delete(name: string, owner: Owner): Promise<void> {
    await this.find(name, owner);
    await this.#options.reconciler.transition(nameKey(name), ({ state }) =>
      state.at === "Deleting" ? null : { kind: "delete" },
    );
  }

  async find(name: string, owner: Owner): Promise<ComponentRecord> {
    const found = await this.#options.store.kinds.components.find(nameKey(name));
    if (found.at !== "found") throw notFound("inference component", hostingArn("inference-component", name, owner));
    return found.value;
  }

  /** Returns the names of an endpoint's components, in order. */
  namesOn(endpointName: string): readonly string[] {
    return this.#options.actions
      .of(endpointName)
      .map(({ name }) => name)
      .toSorted();
  }

  /** Returns the number of copies in service. */
  inServiceCount(name: string): number {
    return this.#options.actions.running(name)?.inServiceCount ?? 0;
  }

  /** Lists components that match the query. */
  list(
    question: ListQuery,
    isWanted: (record: ComponentRecord) => boolean,
    nextTick: () => Promise<void>,
  ): Promise<ListingPage<ComponentRecord>> {
    return listPage(this.#options.store.kinds.components, question, nextTick, isWanted);
  }

  /** Resolves when the component is in a stable state or deleted, or when the wait ends, whichever is first. */
  async settled(name: string, wait: Wait): Promise<void> {
    const { store, fleet, watch } = this.#options;
    using over = openWait(wait, watch.stopping, fleet.clock);
    const isSettled = () => {
      const at = store.view.componentState(nameKey(name));
      return at === null || !isMoving({ at });
    };
    await untilStable(store, isSettled, over.signal);
  }

  /** Throws AwsError with the runtime's codes and messages. */
  async invoke(endpointName: string, name: string, request: InvocationRequest): Promise<InvocationReply> {
    const running = this.#options.actions.running(name);
    const isOwn = running !== undefined && nameKey(running.endpointName) === nameKey(endpointName);
    if (isOwn) return await running.invoke(request);
    throw new AwsError("ValidationError", `Inference Component ${name} of endpoint ${endpointName} not found.`);
  }

  /** Throws for an endpoint with components, which cannot be deleted or stopped. */
  checkUnused({ name, arn }: EndpointRecord): void {
    const names = this.#options.actions
      .of(name)
      .map((each) => `"${each.name}"`)
      .toSorted();
    if (names.length === 0) return;
    const shown = names.slice(0, 10).join(", ");
    throw invalid(`Endpoint "${arn}" has inference components, which have to be deleted first: ${shown}.`);
  }

  /** Throws for sizes that would remove instances with copies. Call it while no copies are being placed. */
  checkSizes({ name, generations }: EndpointRecord, sizes: readonly GroupSize[]): void {
    const components = this.#options.actions.of(name);
    for (const [index, { plan }] of generations[0].variants.entries()) {
      const { VariantName: variantName } = plan.variant;
      const used = usedCount(components, variantName);
      const wanted = sizes[index]?.instanceCount ?? 0;
      if (wanted >= used) continue;
      throw invalid(
        `Variant "${variantName}" cannot have ${wanted} instances: copies of inference components are on ${used} of them. ` +
          "Lower their copy counts, or delete some of them.",
      );
    }
  }

  /** Throws for a next generation that lacks the components' variants. Call it while no copies are being placed. */
  checkGeneration({ name }: EndpointRecord, { variants, configName }: Generation): void {
    const components = this.#options.actions.of(name);
    for (const component of components) {
      const { variantName } = component;
      const group = variants.find(({ plan }) => plan.variant.VariantName === variantName);
      const shared = group === undefined ? null : this.#options.variants.ofGroup(group, configName);
      const used = usedCount(components, variantName);
      const instances = shared === null ? [] : sharedInstances(shared, component, components);
      const isTooMuch = instances.some(({ node, taken }) => {
        const nodes = (shared?.nodes ?? []).filter(({ id }) => node === null || id === node);
        return !fitsSomewhere({ nodes }, taken);
      });
      const type = component.specs[0].request["InstanceType"];
      if (typeof type === "string" && group !== undefined && group.plan.variant.InstanceType !== type) {
        throw invalid(
          `Inference component "${component.name}" has its specification for ${type}, and configuration "${configName}" has another type: ` +
            "delete the component, or update it with a specification without InstanceType, first.",
        );
      }
      if (group?.plan.variant.ModelName === "" && used <= instances.length && !isTooMuch) continue;
      throw invalid(
        `Inference component "${component.name}" is on variant "${variantName}", on which configuration "${configName}" cannot hold its copies.`,
      );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#options.reconciler[Symbol.asyncDispose]();
  }

  async #endpoint(name: string, owner: Owner): Promise<EndpointRecord> {
    const found = await this.#options.store.kinds.endpoints.find(nameKey(name));
    if (found.at !== "found") throw notFound("endpoint", hostingArn("endpoint", name, owner));
    const { state, arn } = found.value;
    if (state.at === "InService" || state.at === "Updating" || state.at === "RollingBack") return found.value;
    throw invalid(`Endpoint "${arn}" is ${state.at}; inference components need one that is InService.`);
  }

  #variantName(endpoint: EndpointRecord, asked: string | null): string {
    const names = endpoint.generations[0].variants.map(({ plan }) => plan.variant.VariantName);
    const [only] = names;
    const name = asked ?? (names.length === 1 ? only : undefined);
    if (name === undefined) throw invalid("VariantName must be given: the endpoint has several variants.");
    if (!names.includes(name)) throw invalid(`Could not find variant "${name}" of endpoint "${endpoint.arn}".`);
    if (this.#options.variants.of(endpoint, name) === null) {
      throw invalid(
        `Variant "${name}" of endpoint "${endpoint.arn}" has a model: inference components need a variant without ModelName.`,
      );
    }
    return name;
  }

  /** Throws for a claim that no instance could ever satisfy. */
  #checkFits(endpoint: EndpointRecord, variantName: string, claim: ComponentClaim): void {
    const shared = this.#options.variants.of(endpoint, variantName);
    if (shared === null || fitsSomewhere(shared, claim)) return;
    const { nodes, variant } = shared;
    const { has } = nodes.reduce((one, other) => (one.has.memoryBytes < other.has.memoryBytes ? other : one));
    throw invalid(
      `The compute resource requirements are more than an instance of ${variant.InstanceType} has here: ` +
        `${has.cpuCores} CPU cores, ${Math.floor(has.memoryBytes / 2 ** 20)} MiB of memory, ${has.acceleratorCount} accelerators.`,
    );
  }

  #checkAlarms(names: readonly string[]): void {
    const unknown = names.filter((name) => this.#options.alarmState(name) === null);
    if (unknown.length === 0) return;
    throw invalid(`Could not find CloudWatch alarms that AutoRollbackConfiguration names: ${unknown.join(", ")}.`);
  }

  /** Returns the spec for the variant's instance type. */
  async #specFor(
    asked: RequestedComponentSpec,
    of: {
      readonly endpoint: EndpointRecord;
      readonly variantName: string;
      readonly owner: Owner;
      readonly before: ComponentSpec | null;
    },
  ): Promise<ComponentSpec> {
    const shared = this.#options.variants.of(of.endpoint, of.variantName);
    const type = shared?.variant.InstanceType;
    const { others = [] } = asked;
    const all = [asked, ...others];
    const fitting = all.find(({ instanceType }) => instanceType === undefined || instanceType === type);
    if (fitting === undefined) {
      const types = all.map(({ instanceType }) => instanceType).join(", ");
      throw invalid(
        `Variant "${of.variantName}" has instances of ${type}, and the specifications are for ${types}: give one with this InstanceType.`,
      );
    }
    const spec = await this.#spec(fitting, of);
    return others.length === 0 ? spec : { ...spec, alternatives: all.map(({ request }) => request) };
  }

  async #spec(
    asked: RequestedComponentSpec,
    { owner, before }: { readonly owner: Owner; readonly before: ComponentSpec | null },
  ): Promise<ComponentSpec> {
    const model = (await this.#model(asked, owner)) ?? before?.model;
    const claim = asked.claim ?? before?.claim;
    if (model === undefined) throw invalid("Either ModelName or Container must be given in the Specification.");
    if (claim === undefined) throw invalid("ComputeResourceRequirements must be given in the Specification.");
    return {
      number: (before?.number ?? 0) + 1,
      model,
      isNamed: asked.modelName !== null || (asked.container === null && before?.isNamed === true),
      claim,
      memoryBytesMax: asked.claim === null ? (before?.memoryBytesMax ?? null) : asked.memoryBytesMax,
      strategy: asked.strategy ?? before?.strategy ?? "SPREAD",
      startSeconds: asked.startSeconds ?? before?.startSeconds ?? null,
      downloadSeconds: asked.downloadSeconds ?? before?.downloadSeconds ?? null,
      request: { ...before?.request, ...asked.request },
    };
  }

  /** Returns null if the request has no model. */
  async #model({ modelName, container }: RequestedComponentSpec, owner: Owner): Promise<ModelRecord | null> {
    if (modelName !== null && container !== null) throw invalid("ModelName and Container exclude each other.");
    const shared = { name: "", arn: "", createdMs: 0, owner, executionMode: "Serial", request: {} } as const;
    if (container !== null) return { ...shared, containers: [container] };
    if (modelName === null) return null;
    const model = await this.#options.catalog.model(modelName, owner);
    if (model.containers.length === 1 && model.containers[0]?.Mode !== "MultiModel") return model;
    throw invalid(`Model "${model.arn}" cannot be an inference component: it needs one container, with one model.`);
  }
}

function checkMayUpdate({ state, arn }: ComponentRecord): void {
  if (state.at === "InService") return;
  if (state.at === "Failed") throw invalid(`Cannot update inference component "${arn}": it has failed; delete it.`);
  throw invalid(`Cannot update in-progress inference component "${arn}".`);
}
