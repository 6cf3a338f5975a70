import { randomUUID } from "node:crypto";
import { AwsError, LoopTurns } from "../base/index.ts";
import type { Components } from "./components.ts";
import { openComponents } from "./open-components.ts";
import type { SharedVariants } from "./shared-variants.ts";
import { DocumentConflict, type Documents } from "../records/index.ts";
import { asyncLimits, type AsyncLimits, type ResultOutbox } from "./async-inference/index.ts";
import { AsyncInferences } from "./async-inferences.ts";
import { MachineMemory } from "./agent/index.ts";
import { Catalogue, type NewRecord } from "./catalogue.ts";
import {
  hostingArn,
  nameKey,
  type DeploymentConfig,
  type EndpointConfigRecord,
  type ModelRecord,
  type Owner,
} from "./definitions/index.ts";
import { EndpointMoves, type LookAtAlarm } from "./endpoint-moves.ts";
import { EndpointWatch } from "./endpoint-watch.ts";
import type { Wait } from "./settled.ts";
import {
  alarmsOf,
  groupsOf,
  limitsOf,
  productionCount,
  resized,
  retaining,
  settledSizes,
  typeOf,
  type EndpointUpdate,
  type VariantSize,
} from "./endpoint-updates.ts";
import {
  beginChange,
  checkDeployment,
  footprintOf,
  mayStop,
  mayUpdate,
  newGeneration,
  plannedFootprint,
  resizingSteps,
  restoringSteps,
  serverlessDeploymentRefusal,
  stateChangeOf,
  updateSteps,
  type EndpointRecord,
  type EndpointState,
  type FleetOptions,
  type FleetParts,
  type Generation,
} from "./endpoints/index.ts";
import { alreadyExists, inProgress, invalid, notFound } from "./hosting-errors.ts";
import type { Unconfined } from "./instances/index.ts";
import { Mirrors, type MirrorFigures, type MirroringLimits } from "./mirrors/index.ts";
import {
  endpointNotFound,
  endpointStopped,
  type InvocationReply,
  type InvocationRequest,
} from "./invocations/index.ts";
import { Quotas, type HostingLimits } from "./quotas.ts";
import { JobMemory } from "./transforms/index.ts";
import { TransformMoves } from "./transform-moves.ts";
import { Transforms } from "./transforms.ts";
import { HostingStore, listPage, type ListAnswer, type ListQuestion, type Tag } from "./store/index.ts";
import { newInstanceId, wantedInstances } from "./wanted-instances.ts";

export interface HostingOptions {
  /** Of a database with `hostingMigrations`. */
  readonly documents: Documents;
  readonly fleet: Omit<FleetOptions, "machineMemory">;
  readonly limits: HostingLimits;
  /** In [0, 1): which instance a request goes to. */
  readonly random: () => number;
  readonly alarmState: LookAtAlarm;
  /** Where asynchronous inference tells its results; nothing is told unless given. */
  readonly outbox?: ResultOutbox;
  readonly asyncLimits?: AsyncLimits;
  readonly mirroring?: MirroringLimits;
}

/** An endpoint's record, and how many instances of each of its groups are in service, by `groupKey`. */
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
  readonly asyncInferences: AsyncInferences;
  readonly watch: EndpointWatch;
  readonly #mirrors: Mirrors;
  readonly components: Components;
  readonly #variants: SharedVariants;

  private constructor(options: HostingOptions, store: HostingStore) {
    const { limits, random, alarmState } = options;
    const machineMemory = new MachineMemory({
      bytesMax: limits.memoryBytesMax,
      reservedBytes: () => this.#quotas.reservedBytes,
    });
    const fleet: FleetOptions = { ...options.fleet, machineMemory };
    this.#options = options;
    this.#store = store;
    this.watch = new EndpointWatch(store, fleet.clock);
    this.#quotas = new Quotas(store, limits);
    this.#catalogue = new Catalogue(store, this.#quotas, fleet.clock);
    this.#mirrors = new Mirrors({
      ...fleet,
      requestBytesMax: fleet.requestMemory.bytesMax,
      random,
      newId: randomUUID,
      limits: options.mirroring ?? {},
    });
    this.#moves = new EndpointMoves({
      store,
      fleet,
      mirrors: this.#mirrors,
      random,
      newInstanceId,
      alarmState,
      claim: (what, instanceType) => this.#quotas.claim(what, instanceType),
      retireMsMax: limits.retireMsMax,
    });
    this.asyncInferences = new AsyncInferences({
      store,
      fleet,
      limits: options.asyncLimits ?? asyncLimits,
      running: (name) => this.#moves.running(name),
      allRunning: () => this.#moves.allRunning(),
      newId: randomUUID,
      outbox: options.outbox ?? null,
    });
    const claim: FleetParts["claim"] = (what, instanceType) => this.#quotas.claim(what, instanceType);
    const { components, variants } = openComponents({
      store,
      quotas: this.#quotas,
      catalogue: this.#catalogue,
      parts: { fleet, random, newId: newInstanceId, claim },
      retireMsMax: limits.retireMsMax,
      holding: this.watch.stopping,
      settled: (name, wait) => this.settled(name, wait),
      resize: (name, size, owner) => this.resizeEndpoint(name, [size], owner),
    });
    this.components = components;
    this.#variants = variants;
    this.transforms = new Transforms({
      store,
      quotas: this.#quotas,
      catalogue: this.#catalogue,
      moves: new TransformMoves({
        store,
        fleet,
        newInstanceId,
        memory: new JobMemory(fleet.requestMemory),
        turns: new LoopTurns(),
      }),
      fleet,
      holding: this.watch.stopping,
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
    await this.asyncInferences.resume();
    await this.components.resume();
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
    readonly deploymentConfig: DeploymentConfig | null;
  }): Promise<EndpointRecord> {
    const { name, configName, owner, tags } = asked;
    const { endpoints } = this.#store.kinds;
    const key = nameKey(name);
    const arn = hostingArn("endpoint", name, owner);
    const found = await endpoints.find(key);
    if (found.at === "found") throw alreadyExists("endpoint", arn);
    using _reserved = this.#quotas.reserveRecord("endpoints", key);
    const generation = newGeneration(1, await this.#catalogue.plan(configName, owner));
    this.#checkDeployment(asked.deploymentConfig, generation);
    using _instances = this.#reserveInstances(key, [generation]);
    const nowMs = this.#options.fleet.clock.epochMs();
    const record: EndpointRecord = {
      name,
      arn,
      owner,
      createdMs: nowMs,
      modifiedMs: nowMs,
      state: { at: "Creating" },
      generations: [generation],
      deploymentConfig: asked.deploymentConfig,
    };
    const expects = found.at === "absent" ? "absent" : found.version;
    try {
      const changes = [endpoints.put(key, record, expects), ...this.#catalogue.firstTags(arn, tags)];
      await this.#store.write(changes, { stateChange: stateChangeOf(null, record, nowMs) });
    } catch (error) {
      // Somebody else was given the name meanwhile.
      if (error instanceof DocumentConflict) throw alreadyExists("endpoint", arn);
      throw error;
    }
    this.#moves.go(record);
    return record;
  }

  /** At any time but while there is nothing to go back to: an update that is under way is superseded. */
  async updateEndpoint(asked: EndpointUpdate): Promise<EndpointRecord> {
    const { name, configName, owner } = asked;
    const record = await this.endpoint(name, owner);
    this.#checkMayUpdate(record);
    const key = nameKey(name);
    const plan = await this.#catalogue.plan(configName, owner);
    const deploymentConfig = asked.retainsDeployment ? record.deploymentConfig : asked.deploymentConfig;
    const next = newGeneration(0, plan);
    this.#checkDeployment(deploymentConfig, next);
    using _instances = this.#reserveInstances(key, [retaining(next, record.generations[0], asked)]);
    const nowMs = this.#options.fleet.clock.epochMs();
    const moved = await this.#variants.placing(name, () =>
      this.#moves.record(key, (now) => {
        this.#checkMayUpdate(now);
        const [first] = now.generations;
        const number = Math.max(...now.generations.map((generation) => generation.number)) + 1;
        const numbered = retaining({ ...next, number }, first, asked);
        this.components.checkGeneration(now, numbered);
        // What an earlier update has come to is undone first.
        const isSettled = now.state.at === "InService";
        const all: EndpointRecord["generations"] = [...now.generations, numbered];
        const restoring = isSettled ? [] : restoringSteps(all, now.deploymentConfig);
        const steps = [...restoring, ...updateSteps(first, numbered, deploymentConfig)];
        const change = beginChange(nowMs, steps, limitsOf(deploymentConfig, nowMs));
        return { kind: "update", next: numbered, change, deploymentConfig };
      }),
    );
    if (moved === null) throw notFound("endpoint", record.arn);
    this.#moves.go(moved);
    return moved;
  }

  /** Other weights and numbers of instances for some variants of an endpoint in service. */
  async resizeEndpoint(name: string, asked: readonly VariantSize[], owner: Owner): Promise<EndpointRecord> {
    const record = await this.endpoint(name, owner);
    const key = nameKey(name);
    const before = plannedFootprint(record);
    const sizesFor = (now: EndpointRecord) => {
      if (now.state.at !== "InService") throw inProgress(now);
      return resized(now.generations[0], asked);
    };
    const wanted = groupsOf(record.generations[0], sizesFor(record));
    const after = footprintOf(wanted);
    const more = {
      instanceCount: Math.max(0, after.instanceCount - before.instanceCount),
      containerCount: Math.max(0, after.containerCount - before.containerCount),
      promisedBytes: Math.max(0, (after.promisedBytes ?? 0) - (before.promisedBytes ?? 0)),
    };
    using _instances = this.#quotas.reserveEndpoint(key, more, typeOf(record.generations[0]));
    const nowMs = this.#options.fleet.clock.epochMs();
    const moved = await this.#variants.placing(name, () =>
      this.#moves.record(key, (now) => {
        const sizes = sizesFor(now);
        this.components.checkSizes(now, sizes);
        return { kind: "resize", change: beginChange(nowMs, resizingSteps(now.generations[0], sizes)) };
      }),
    );
    if (moved === null) throw notFound("endpoint", record.arn);
    this.#moves.go(moved);
    return moved;
  }

  /** Ends what runs for an endpoint in service; `startEndpoint` has it come up again. */
  async stopEndpoint(name: string, owner: Owner): Promise<EndpointRecord> {
    const record = await this.endpoint(name, owner);
    const moved = await this.#moves.record(nameKey(name), (now) => {
      this.components.checkUnused(now);
      if (!mayStop(now.state)) throw invalid(`Cannot stop endpoint "${now.arn}": it is ${now.state.at}.`);
      return { kind: "stop" };
    });
    if (moved === null) throw notFound("endpoint", record.arn);
    this.#moves.go(moved);
    return moved;
  }

  async startEndpoint(name: string, owner: Owner): Promise<EndpointRecord> {
    const record = await this.endpoint(name, owner);
    using _instances = this.#reserveInstances(nameKey(name), record.generations);
    const moved = await this.#moves.record(nameKey(name), (now) => {
      if (now.state.at !== "OutOfService") {
        throw invalid(`Cannot start endpoint "${now.arn}": it is ${now.state.at}.`);
      }
      return { kind: "start" };
    });
    if (moved === null) throw notFound("endpoint", record.arn);
    this.#moves.go(moved);
    return moved;
  }

  /** At any time: what is being brought up is given up. Resolves when the deletion is recorded, not when it is done. */
  async deleteEndpoint(name: string, owner: Owner): Promise<void> {
    await this.endpoint(name, owner);
    const moved = await this.#variants.placing(name, () =>
      this.#moves.record(nameKey(name), (now) => {
        if (now.state.at === "Deleting") return null;
        this.components.checkUnused(now);
        return { kind: "delete" };
      }),
    );
    if (moved !== null) this.#moves.go(moved);
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
    return { record, inServiceCounts: this.#moves.running(name)?.inServiceCounts ?? new Map<string, number>() };
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

  /** Copies for shadow variants and data capture. */
  get mirrorFigures(): MirrorFigures {
    return this.#mirrors.figures;
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
  settled(name: string, wait: Wait): Promise<void> {
    return this.watch.settled(name, wait);
  }

  /** Whether requests for an endpoint of that name are taken. */
  isRunning(name: string): boolean {
    return this.#moves.running(name) !== undefined;
  }

  /** Throws AwsError with the runtime's codes and sentences. */
  async invoke(name: string, accountId: string, request: InvocationRequest): Promise<InvocationReply> {
    const running = this.#moves.running(name);
    if (running === undefined) throw this.#notServing(name, accountId);
    if (running.asyncInference !== null) {
      const text = `Endpoint ${name} of account ${accountId} is an asynchronous endpoint: use InvokeEndpointAsync.`;
      throw new AwsError("ValidationError", text);
    }
    const { inferenceComponent = null } = request;
    if (inferenceComponent !== null) return await this.components.invoke(name, inferenceComponent, request);
    return await running.invoke(request);
  }

  /** Stops every instance; records stay, and `resume` of a later life brings the endpoints back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.asyncInferences[Symbol.asyncDispose]();
    await Promise.all([
      this.#moves[Symbol.asyncDispose](),
      this.components[Symbol.asyncDispose](),
      this.transforms[Symbol.asyncDispose](),
    ]);
    await this.#mirrors[Symbol.asyncDispose]();
    await this.#store[Symbol.asyncDispose]();
  }

  #notServing(name: string, accountId: string): AwsError {
    const isStopped = this.#store.view.endpointState(nameKey(name)) === "OutOfService";
    return isStopped ? endpointStopped(name, accountId) : endpointNotFound(name, accountId);
  }

  #reserveInstances(key: string, generations: readonly Generation[]): Disposable {
    const groups = generations.flatMap((generation) => groupsOf(generation, settledSizes(generation)));
    return this.#quotas.reserveEndpoint(key, footprintOf(groups), typeOf(generations[0]));
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
