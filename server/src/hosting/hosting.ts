import { randomBytes } from "node:crypto";
import { Gate, KeyedLock, openDeadline, orAborted, TaskGroup } from "../base/index.ts";
import type { Records } from "../records/index.ts";
import {
  hostingArn,
  nameKey,
  type EndpointConfigRecord,
  type ModelRecord,
  type Owner,
  type VariantPlan,
} from "./definitions/index.ts";
import {
  instanceModels,
  isTransient,
  moveEndpoint,
  RunningEndpoint,
  type EndpointEvent,
  type EndpointRecord,
  type FleetOptions,
} from "./endpoints/index.ts";
import { alreadyExists, invalid, limitExceeded, notFound } from "./hosting-errors.ts";
import type { InstanceOwner } from "./instances/index.ts";
import { endpointNotFound, type InvocationReply, type InvocationRequest } from "./invocations/index.ts";
import { endpointRecord, modelRecord, RecordTable } from "./store/index.ts";

export interface HostingLimits {
  readonly modelsMax: number;
  readonly configsMax: number;
  readonly endpointsMax: number;
  readonly instancesMax: number;
  /** How long instances that get no more requests are kept for those they have. */
  readonly retireMsMax: number;
}

export const hostingLimits: HostingLimits = {
  modelsMax: 10_000,
  configsMax: 10_000,
  endpointsMax: 500,
  instancesMax: 64,
  retireMsMax: 120_000,
};

export interface HostingOptions {
  readonly records: Records;
  readonly fleet: FleetOptions;
  readonly limits: HostingLimits;
  /** In [0, 1): which variant a request goes to. */
  readonly random: () => number;
}

export interface Tag {
  readonly Key: string;
  readonly Value: string;
}

/** Models, endpoint configurations and endpoints: their records, their moves, and what runs for them. */
export class Hosting implements AsyncDisposable {
  readonly models: RecordTable<ModelRecord>;
  readonly configs: RecordTable<EndpointConfigRecord>;
  readonly endpoints: RecordTable<EndpointRecord>;
  readonly tags: RecordTable<readonly Tag[]>;
  readonly #options: HostingOptions;
  readonly #running = new Map<string, RunningEndpoint>();
  readonly #starting = new Map<string, AbortController>();
  readonly #moved = new Gate();
  readonly #holding = new AbortController();
  readonly #moves = new KeyedLock();
  readonly #tasks: TaskGroup;

  constructor(options: HostingOptions) {
    const { records } = options;
    const { logger } = options.fleet;
    this.#options = options;
    this.models = new RecordTable(records, { kind: "model", read: modelRecord, logger });
    this.configs = new RecordTable<EndpointConfigRecord>(records, { kind: "endpoint-config", logger });
    this.endpoints = new RecordTable(records, { kind: "endpoint", read: endpointRecord, logger });
    this.tags = new RecordTable<readonly Tag[]>(records, { kind: "tags", logger });
    this.#tasks = new TaskGroup((error) => {
      logger.error("an endpoint's move ended unexpectedly", { error: String(error) });
    });
  }

  /** Takes up what an earlier life was doing: endpoints in service come back, moves begin again. Unpacked models are kept for those that come back. */
  async resume(): Promise<void> {
    await this.#options.fleet.host.resume([...this.endpoints.values()].flatMap(wantedInstances));
    for (const record of this.endpoints.values()) this.#takeUp(record);
  }

  #takeUp(record: EndpointRecord): void {
    const { logger } = this.#options.fleet;
    try {
      this.#resumeEndpoint(record);
    } catch (error) {
      logger.error("an endpoint cannot be brought back", { endpoint: record.name, error: String(error) });
    }
  }

  #resumeEndpoint(record: EndpointRecord): void {
    const { at } = record.state;
    if (at === "Creating") this.#startMove(record, (closing) => this.#bringUp(record, closing));
    if (at === "Deleting") this.#startMove(record, (closing) => this.#tearDown(record.name, closing));
    if (at !== "InService" && at !== "Updating" && at !== "RollingBack") return;
    this.#startMove(record, async (closing) => {
      const running = this.#open(record, record);
      this.#running.set(nameKey(record.name), running);
      running.resume();
      this.#options.fleet.logger.info("an endpoint is brought back", { endpoint: record.name });
      if (at === "Updating") await this.#replace(record.name, closing);
      if (at === "RollingBack") await this.#move(record.name, { kind: "rolled-back" });
    });
  }

  async createModel(model: Omit<ModelRecord, "arn" | "createdMs">): Promise<ModelRecord> {
    const arn = hostingArn("model", model.name, model.owner);
    if (this.models.get(nameKey(model.name)) !== undefined) throw alreadyExists("model", arn);
    this.#checkCount("Number of models", "Models", this.models.size, this.#options.limits.modelsMax);
    const record = { ...model, arn, createdMs: this.#nowMs() };
    await this.models.put(nameKey(model.name), record);
    return record;
  }

  async createConfig(config: Omit<EndpointConfigRecord, "arn" | "createdMs">): Promise<EndpointConfigRecord> {
    const arn = hostingArn("endpoint-config", config.name, config.owner);
    if (this.configs.get(nameKey(config.name)) !== undefined) throw alreadyExists("endpoint configuration", arn);
    this.#checkCount(
      "Number of endpoint configurations",
      "Endpoint Configurations",
      this.configs.size,
      this.#options.limits.configsMax,
    );
    for (const { ModelName } of config.variants) {
      if (this.models.get(nameKey(ModelName)) === undefined) {
        throw notFound("model", hostingArn("model", ModelName, config.owner));
      }
    }
    const record = { ...config, arn, createdMs: this.#nowMs() };
    await this.configs.put(nameKey(config.name), record);
    return record;
  }

  async createEndpoint(name: string, configName: string, owner: Owner): Promise<EndpointRecord> {
    const arn = hostingArn("endpoint", name, owner);
    if (this.endpoints.get(nameKey(name)) !== undefined) throw alreadyExists("endpoint", arn);
    const { limits } = this.#options;
    this.#checkCount("Number of endpoints", "Endpoints", this.endpoints.size, limits.endpointsMax);
    const { config, plans } = this.#plan(configName, owner);
    this.#checkInstances(plans);
    const nowMs = this.#nowMs();
    const record: EndpointRecord = {
      name,
      arn,
      owner,
      createdMs: nowMs,
      modifiedMs: nowMs,
      state: { at: "Creating" },
      configName: config.name,
      plans,
    };
    await this.endpoints.put(nameKey(name), record);
    this.#startMove(record, (closing) => this.#bringUp(record, closing));
    return record;
  }

  async updateEndpoint(name: string, configName: string, owner: Owner): Promise<EndpointRecord> {
    const record = this.endpoint(name, owner);
    if (record.state.at === "Failed")
      throw invalid(`Cannot update endpoint "${record.arn}": it has failed; delete it.`);
    if (record.state.at !== "InService") throw invalid(`Cannot update in-progress endpoint "${record.arn}".`);
    const { config, plans } = this.#plan(configName, owner);
    this.#checkInstances(plans);
    await this.#move(name, { kind: "update", configName: config.name, plans });
    this.#startMove(record, (closing) => this.#replace(name, closing));
    return record;
  }

  /** At any time: what is being brought up is given up. Resolves when the deletion is recorded, not when it is done. */
  async deleteEndpoint(name: string, owner: Owner): Promise<void> {
    const record = this.endpoint(name, owner);
    if (record.state.at === "Deleting") return;
    await this.#move(name, { kind: "delete" });
    this.#starting.get(nameKey(name))?.abort(new Error("the endpoint is deleted"));
    this.#startMove(record, (closing) => this.#tearDown(name, closing));
  }

  model(name: string, owner: Owner): ModelRecord {
    const record = this.models.get(nameKey(name));
    if (record === undefined) throw notFound("model", hostingArn("model", name, owner));
    return record;
  }

  config(name: string, owner: Owner): EndpointConfigRecord {
    const record = this.configs.get(nameKey(name));
    if (record === undefined) throw notFound("endpoint configuration", hostingArn("endpoint-config", name, owner));
    return record;
  }

  endpoint(name: string, owner: Owner): EndpointRecord {
    const record = this.endpoints.get(nameKey(name));
    if (record === undefined) throw notFound("endpoint", hostingArn("endpoint", name, owner));
    return record;
  }

  /** What runs for an endpoint; undefined while nothing does. */
  running(name: string): RunningEndpoint | undefined {
    return this.#running.get(nameKey(name));
  }

  /** Resolves when the endpoint is in a state that stays, is gone, or the wait is over; whichever comes first. */
  async settled(name: string, options: { readonly waitMsMax: number; readonly signal: AbortSignal }): Promise<void> {
    const { clock } = this.#options.fleet;
    const asked = AbortSignal.any([options.signal, this.#holding.signal]);
    using over = openDeadline({ clock, afterMs: options.waitMsMax, signal: asked });
    for (;;) {
      const record = this.endpoints.get(nameKey(name));
      if (record === undefined || !isTransient(record.state)) return;
      try {
        await orAborted(this.#moved.opened(), over.signal);
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
    const running = this.#running.get(nameKey(name));
    if (running === undefined) throw endpointNotFound(name, accountId);
    return await running.invoke(request);
  }

  /** Stops every instance; records stay, and `resume` of a later life brings the endpoints back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await Promise.all([...this.#running.values()].map((running) => running.leave()));
    this.#running.clear();
  }

  #plan(configName: string, owner: Owner): { config: EndpointConfigRecord; plans: VariantPlan[] } {
    const config = this.config(configName, owner);
    const plans = config.variants.map((variant) => ({ variant, model: this.model(variant.ModelName, owner) }));
    return { config, plans };
  }

  #checkInstances(plans: readonly VariantPlan[]): void {
    const { instancesMax } = this.#options.limits;
    const count = (all: readonly VariantPlan[]) =>
      all.reduce((sum, { variant }) => sum + variant.InitialInstanceCount, 0);
    const used = [...this.endpoints.values()].reduce((sum, { plans: current, state }) => {
      return sum + count(current) + (state.at === "Updating" ? count(state.next.plans) : 0);
    }, 0);
    const wanted = count(plans);
    if (used + wanted <= instancesMax) return;
    const type = plans[0]?.variant.InstanceType ?? "";
    throw limitExceeded(
      { what: `${type} for endpoint usage`, unit: "Instances" },
      { limit: instancesMax, used, wanted },
    );
  }

  #checkCount(what: string, unit: string, used: number, limit: number): void {
    if (used >= limit) throw limitExceeded({ what, unit }, { limit, used, wanted: 1 });
  }

  #current(name: string): EndpointRecord {
    const record = this.endpoints.get(nameKey(name));
    if (record === undefined) throw new Error(`the endpoint ${name} is gone`);
    return record;
  }

  #open(
    record: EndpointRecord,
    plan: { readonly configName: string; readonly plans: readonly VariantPlan[] },
  ): RunningEndpoint {
    const { fleet, random } = this.#options;
    return new RunningEndpoint(record, plan, { fleet, random, newId: newInstanceId });
  }

  /** The moves of one endpoint are made one after the other: what a deletion gives up has ended before its name is free again. */
  #startMove({ name }: EndpointRecord, move: (closing: AbortSignal) => Promise<void>): void {
    this.#tasks.run((closing) => this.#moves.run(nameKey(name), () => move(closing)));
  }

  async #bringUp(record: EndpointRecord, closing: AbortSignal): Promise<void> {
    const key = nameKey(record.name);
    if (this.endpoints.get(key)?.state.at !== "Creating") return;
    const running = this.#open(record, record);
    const outcome = await this.#startFleets(key, running, closing);
    if (closing.aborted || this.endpoints.get(key)?.state.at !== "Creating") {
      await running[Symbol.asyncDispose]();
      return;
    }
    if (outcome === null) this.#running.set(key, running);
    await this.#move(record.name, outcome === null ? { kind: "ready" } : { kind: "failed", reason: outcome });
  }

  /** Blue and green at once: the new fleets come up beside the old ones, then all traffic goes to them. */
  async #replace(name: string, closing: AbortSignal): Promise<void> {
    const record = this.#current(name);
    if (record.state.at !== "Updating") return;
    const key = nameKey(record.name);
    const { next } = record.state;
    const running = this.#open(record, next);
    const outcome = await this.#startFleets(key, running, closing);
    if (closing.aborted || this.endpoints.get(key)?.state.at !== "Updating") {
      await running[Symbol.asyncDispose]();
      return;
    }
    if (outcome !== null) {
      await this.#move(record.name, { kind: "failed", reason: outcome });
      if (this.#current(name).state.at === "RollingBack") await this.#move(record.name, { kind: "rolled-back" });
      return;
    }
    const before = this.#running.get(key);
    this.#running.set(key, running);
    await this.#move(record.name, { kind: "ready" }, next);
    // Not part of the move: the next one need not wait for the requests that the old instances hold.
    if (before !== undefined) this.#tasks.run((over) => this.#retire(before, over));
  }

  /** Null when every instance is in service, else the failure sentence. */
  async #startFleets(key: string, running: RunningEndpoint, closing: AbortSignal): Promise<string | null> {
    const aborter = new AbortController();
    this.#starting.set(key, aborter);
    try {
      await running.start(AbortSignal.any([closing, aborter.signal]));
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      if (this.#starting.get(key) === aborter) this.#starting.delete(key);
    }
  }

  /** The limit is longer than any request: a cold model is waited for 55 s, its answer 59 s. */
  async #retire(running: RunningEndpoint, closing: AbortSignal): Promise<void> {
    const { fleet, limits } = this.#options;
    using limit = openDeadline({ clock: fleet.clock, afterMs: limits.retireMsMax, signal: closing });
    await running.retire(limit.signal);
  }

  async #tearDown(name: string, closing: AbortSignal): Promise<void> {
    const key = nameKey(name);
    const running = this.#running.get(key);
    this.#running.delete(key);
    if (running !== undefined) await this.#retire(running, closing);
    const record = this.endpoints.get(key);
    if (record !== undefined) await this.tags.delete(record.arn);
    await this.endpoints.delete(key);
    this.#moved.open();
  }

  async #move(
    name: string,
    event: EndpointEvent,
    plan?: { readonly configName: string; readonly plans: readonly VariantPlan[] },
  ): Promise<void> {
    const record = this.#current(name);
    const state = moveEndpoint(record.state, event);
    await this.endpoints.put(nameKey(name), { ...record, ...plan, state, modifiedMs: this.#nowMs() });
    this.#moved.open();
  }

  #nowMs(): number {
    return this.#options.fleet.clock.epochMs();
  }
}

/** The multi-model instances of an endpoint that comes back with the platform. */
function wantedInstances({ name, state, plans }: EndpointRecord): readonly InstanceOwner[] {
  if (state.at !== "InService" && state.at !== "Updating" && state.at !== "RollingBack") return [];
  return plans.flatMap((plan) => {
    const models = instanceModels(plan, name);
    return models.kind === "one" ? [] : Array.from({ length: plan.variant.InitialInstanceCount }, () => models.owner);
  });
}

/** Like the machine ids that log streams end in. */
function newInstanceId(): string {
  return `i-${randomBytes(8).toString("hex")}`;
}
