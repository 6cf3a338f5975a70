import { randomBytes } from "node:crypto";
import { openDeadline, orAborted } from "../base/index.ts";
import { DocumentConflict, type Documents } from "../records/index.ts";
import { Catalogue, type NewRecord } from "./catalogue.ts";
import {
  hostingArn,
  nameKey,
  type EndpointConfigRecord,
  type ModelRecord,
  type Owner,
  type VariantPlan,
} from "./definitions/index.ts";
import { EndpointMoves } from "./endpoint-moves.ts";
import {
  footprintOf,
  containerModels,
  isTransient,
  type EndpointRecord,
  type EndpointState,
  type FleetOptions,
} from "./endpoints/index.ts";
import { alreadyExists, invalid, notFound } from "./hosting-errors.ts";
import type { InstanceOwner, Unconfined } from "./instances/index.ts";
import { endpointNotFound, type InvocationReply, type InvocationRequest } from "./invocations/index.ts";
import { Quotas, type HostingLimits } from "./quotas.ts";
import { JobMemory } from "./transforms/index.ts";
import { TransformMoves } from "./transform-moves.ts";
import { Transforms } from "./transforms.ts";
import { HostingStore, listPage, type ListAnswer, type ListQuestion, type Tag } from "./store/index.ts";

export interface HostingOptions {
  /** Of a database with `hostingMigrations`. */
  readonly documents: Documents;
  readonly fleet: FleetOptions;
  readonly limits: HostingLimits;
  /** In [0, 1): which instance a request goes to. */
  readonly random: () => number;
}

/** An endpoint's record, and how many instances of each of its variants are in service. */
export interface EndpointDescription {
  readonly record: EndpointRecord;
  readonly inServiceCounts: ReadonlyMap<string, number>;
}

export interface HostingFigures {
  readonly endpoints: ReadonlyMap<EndpointState["at"], number>;
  readonly instancesInServiceCount: number;
  /** What of their tenants' confinement the instances in service cannot have on this machine, and why. */
  readonly unconfined: Unconfined;
}

/** Resolves when a long computation may go on. */
type LoopTurn = () => Promise<void>;

const endpointsReadAtOnce = 100;

/** Models, endpoint configurations and endpoints: their records, their moves, and what runs for them. */
export class Hosting implements AsyncDisposable {
  readonly #options: HostingOptions;
  readonly #store: HostingStore;
  readonly #quotas: Quotas;
  readonly #catalogue: Catalogue;
  readonly #moves: EndpointMoves;
  readonly transforms: Transforms;
  readonly #holding = new AbortController();

  private constructor(options: HostingOptions, store: HostingStore) {
    const { fleet, limits, random } = options;
    this.#options = options;
    this.#store = store;
    this.#quotas = new Quotas(store, limits);
    this.#catalogue = new Catalogue(store, this.#quotas, fleet.clock);
    this.#moves = new EndpointMoves({ store, fleet, random, newInstanceId, retireMsMax: limits.retireMsMax });
    this.transforms = new Transforms({
      store,
      quotas: this.#quotas,
      catalogue: this.#catalogue,
      moves: new TransformMoves({ store, fleet, newInstanceId, memory: new JobMemory(fleet.requestMemory) }),
      fleet,
      holding: this.#holding.signal,
    });
  }

  /** Resolves when the records are known; nothing runs before `resume`. */
  static async open(options: HostingOptions): Promise<Hosting> {
    return new Hosting(options, await HostingStore.open(options.documents, options.fleet));
  }

  /** Takes up what an earlier life was doing: endpoints in service come back, moves begin again. Unpacked models are kept for those that come back. */
  async resume(): Promise<void> {
    const records = await this.#allEndpoints();
    await this.#options.fleet.host.resume(records.flatMap(wantedInstances));
    for (const record of records) this.#moves.resume(record);
    await this.transforms.resume();
  }

  createModel(model: NewRecord<ModelRecord>): Promise<ModelRecord> {
    return this.#catalogue.createModel(model);
  }

  createConfig(config: NewRecord<EndpointConfigRecord>): Promise<EndpointConfigRecord> {
    return this.#catalogue.createConfig(config);
  }

  /** Resolves when the endpoint is recorded as `Creating`; what fails from then on is its status. */
  async createEndpoint(asked: {
    readonly name: string;
    readonly configName: string;
    readonly owner: Owner;
    readonly tags: readonly Tag[];
  }): Promise<EndpointRecord> {
    const { name, configName, owner, tags } = asked;
    const { endpoints } = this.#store.kinds;
    const key = nameKey(name);
    const arn = hostingArn("endpoint", name, owner);
    const found = await endpoints.find(key);
    if (found.at === "found") throw alreadyExists("endpoint", arn);
    using _reserved = this.#quotas.reserveRecord("endpoints", key);
    const deployment = await this.#plan(configName, owner);
    using _instances = this.#reserveInstances(key, deployment.plans);
    const nowMs = this.#options.fleet.clock.epochMs();
    const state = { at: "Creating" } as const;
    const record: EndpointRecord = { name, arn, owner, createdMs: nowMs, modifiedMs: nowMs, state, ...deployment };
    const expects = found.at === "absent" ? "absent" : found.version;
    try {
      await this.#store.write([endpoints.put(key, record, expects), ...this.#catalogue.firstTags(arn, tags)]);
    } catch (error) {
      // Somebody else was given the name meanwhile.
      if (error instanceof DocumentConflict) throw alreadyExists("endpoint", arn);
      throw error;
    }
    this.#moves.bringUp(record);
    return record;
  }

  async updateEndpoint(name: string, configName: string, owner: Owner): Promise<EndpointRecord> {
    const record = await this.endpoint(name, owner);
    if (record.state.at === "Failed") {
      throw invalid(`Cannot update endpoint "${record.arn}": it has failed; delete it.`);
    }
    const inProgress = () => invalid(`Cannot update in-progress endpoint "${record.arn}".`);
    if (record.state.at !== "InService") throw inProgress();
    const key = nameKey(name);
    const deployment = await this.#plan(configName, owner);
    using _instances = this.#reserveInstances(key, deployment.plans);
    const moved = await this.#moves.record(key, "InService", { kind: "update", ...deployment });
    if (moved === null) throw inProgress();
    this.#moves.replace(moved);
    return moved;
  }

  /** At any time: what is being brought up is given up. Resolves when the deletion is recorded, not when it is done. */
  async deleteEndpoint(name: string, owner: Owner): Promise<void> {
    for (;;) {
      const { state } = await this.endpoint(name, owner);
      if (state.at === "Deleting") return;
      const moved = await this.#moves.record(nameKey(name), state.at, { kind: "delete" });
      // Otherwise another move was recorded in between, of which there are only so many.
      if (moved !== null) return this.#moves.tearDown(moved);
    }
  }

  deleteModel(name: string, owner: Owner): Promise<void> {
    return this.#catalogue.deleteModel(name, owner);
  }

  deleteConfig(name: string, owner: Owner): Promise<void> {
    return this.#catalogue.deleteConfig(name, owner);
  }

  model(name: string, owner: Owner): Promise<ModelRecord> {
    return this.#catalogue.model(name, owner);
  }

  config(name: string, owner: Owner): Promise<EndpointConfigRecord> {
    return this.#catalogue.config(name, owner);
  }

  async endpoint(name: string, owner: Owner): Promise<EndpointRecord> {
    const found = await this.#store.kinds.endpoints.find(nameKey(name));
    if (found.at !== "found") throw notFound("endpoint", hostingArn("endpoint", name, owner));
    return found.value;
  }

  async describeEndpoint(name: string, owner: Owner): Promise<EndpointDescription> {
    const record = await this.endpoint(name, owner);
    const fleets = this.#moves.running(name)?.fleets ?? [];
    return { record, inServiceCounts: new Map(fleets.map((fleet) => [fleet.variantName, fleet.inServiceCount])) };
  }

  listModels(question: ListQuestion, turn: LoopTurn): Promise<ListAnswer<ModelRecord>> {
    return listPage(this.#store.kinds.models, question, turn);
  }

  listConfigs(question: ListQuestion, turn: LoopTurn): Promise<ListAnswer<EndpointConfigRecord>> {
    return listPage(this.#store.kinds.configs, question, turn);
  }

  listEndpoints(question: ListQuestion, turn: LoopTurn): Promise<ListAnswer<EndpointRecord>> {
    return listPage(this.#store.kinds.endpoints, question, turn);
  }

  /** Of the model, configuration or endpoint that an ARN names. */
  tags(arn: string): Promise<readonly Tag[]> {
    return this.#catalogue.tags(arn);
  }

  addTags(arn: string, tags: readonly Tag[]): Promise<readonly Tag[]> {
    return this.#catalogue.addTags(arn, tags);
  }

  removeTags(arn: string, keys: ReadonlySet<string>): Promise<void> {
    return this.#catalogue.removeTags(arn, keys);
  }

  /** Whether an object is data of a model: of any there is, or of one that an endpoint still runs. */
  isModelData(object: { readonly bucket: string; readonly key: string }): boolean {
    return this.#store.view.isModelData(object);
  }

  figures(): HostingFigures {
    const endpoints = new Map<EndpointState["at"], number>();
    for (const at of this.#store.view.endpointStates()) endpoints.set(at, (endpoints.get(at) ?? 0) + 1);
    let instancesInServiceCount = 0;
    const unconfined: Record<string, string> = {};
    for (const { fleets } of this.#moves.allRunning()) {
      for (const fleet of fleets) {
        instancesInServiceCount += fleet.inServiceCount;
        Object.assign(unconfined, fleet.unconfined);
      }
    }
    return { endpoints, instancesInServiceCount, unconfined };
  }

  /** Resolves when the endpoint is in a state that stays, is gone, or the wait is over; whichever comes first. */
  async settled(name: string, options: { readonly waitMsMax: number; readonly signal: AbortSignal }): Promise<void> {
    const { clock } = this.#options.fleet;
    const asked = AbortSignal.any([options.signal, this.#holding.signal]);
    using over = openDeadline({ clock, afterMs: options.waitMsMax, signal: asked });
    for (;;) {
      const at = this.#store.view.endpointState(nameKey(name));
      if (at === null || !isTransient({ at })) return;
      try {
        await orAborted(this.#store.view.stateChanged(), over.signal);
      } catch (error) {
        if (over.signal.aborted) return;
        throw error;
      }
    }
  }

  /** Those who wait for a state are answered with the one there is, and from now on nobody waits. */
  stopHolding(): void {
    this.#holding.abort();
  }

  /** Throws AwsError with the runtime's codes and sentences. */
  async invoke(name: string, accountId: string, request: InvocationRequest): Promise<InvocationReply> {
    const running = this.#moves.running(name);
    if (running === undefined) throw endpointNotFound(name, accountId);
    return await running.invoke(request);
  }

  /** Stops every instance; records stay, and `resume` of a later life brings the endpoints back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#moves[Symbol.asyncDispose](), this.transforms[Symbol.asyncDispose]()]);
    await this.#store[Symbol.asyncDispose]();
  }

  async #plan(
    configName: string,
    owner: Owner,
  ): Promise<{ readonly configName: string; readonly plans: VariantPlan[] }> {
    const config = await this.config(configName, owner);
    const plans: VariantPlan[] = [];
    for (const variant of config.variants) plans.push({ variant, model: await this.model(variant.ModelName, owner) });
    return { configName: config.name, plans };
  }

  #reserveInstances(key: string, plans: readonly VariantPlan[]): Disposable {
    return this.#quotas.reserveEndpoint(key, footprintOf(plans), plans[0]?.variant.InstanceType ?? "");
  }

  async #allEndpoints(): Promise<readonly EndpointRecord[]> {
    const { endpoints } = this.#store.kinds;
    const all: EndpointRecord[] = [];
    const query = { order: null, isDescending: false, limit: endpointsReadAtOnce };
    for (let page = await endpoints.page({ ...query, after: null }); ;) {
      all.push(...page.records.map(({ value }) => value));
      if (page.next === null) return all;
      page = await endpoints.page({ ...query, after: page.next });
    }
  }
}

/** The multi-model containers of an endpoint that comes back with the platform. */
function wantedInstances({ name, state, plans }: EndpointRecord): readonly InstanceOwner[] {
  if (state.at !== "InService" && state.at !== "Updating" && state.at !== "RollingBack") return [];
  return plans.flatMap(({ variant, model }) =>
    model.containers.flatMap((container) => {
      const models = containerModels(container, { variant, endpointName: name });
      return models.kind === "one" ? [] : Array.from({ length: variant.InitialInstanceCount }, () => models.owner);
    }),
  );
}

/** Like the machine ids that log streams end in. */
function newInstanceId(): string {
  return `i-${randomBytes(8).toString("hex")}`;
}
