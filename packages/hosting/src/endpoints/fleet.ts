import { AwsError, ChangeNotifier, TaskGroup, assert, delay, openDeadline, rejectOnAbort } from "@galatea/base";
import { variantBudget, type InstanceBudget, type ModelRecord, type VariantPlan } from "../definitions/index.ts";
import {
  instanceTypeBudget,
  type InstancePlacer,
  type InstanceRequest,
  type NodeId,
  type NodeReservation,
} from "../nodes/index.ts";
import type { KeptInstance, Unconfined } from "../instances/index.ts";
import {
  checkTargets,
  ContainerConnectionLost,
  NotSent,
  type InvocationSource,
  type InvocationReply,
  type InvocationRequest,
} from "../invocations/index.ts";
import { VariantMetrics, type ContainerUsageMetric } from "../series/index.ts";
import type { Footprint } from "./endpoint-record.ts";
import { FleetMember } from "./fleet-member.ts";
import type { FleetOptions } from "./fleet-options.ts";
import { ConcurrencySampler } from "./concurrency-sampler.ts";
import { InstanceSampler } from "./instance-sampler.ts";
import { MeasuredMemory, reservedBytesOf } from "./measured-memory.ts";
import {
  containerOwnBytes,
  namedContainers,
  plannedContainers,
  guaranteedModelBytes,
  type NamedContainer,
} from "./planned-containers.ts";
import { SessionTable, sessionsMax, type RoutedSession } from "./session-table.ts";
import { ModelRouter } from "./model-router.ts";
import type { PlacementKey } from "./model-rank.ts";
import { anyOf, leastBusy } from "./routing.ts";
import type { DemandModels, FleetSize, VariantFleet } from "./variant-fleet.ts";

const sampleIntervalMs = 20_000;

export interface FleetNames {
  readonly endpointName: string;
  readonly configName: string;
  /** Key among the fleets of the endpoint, by which the platform's next run finds it. */
  readonly fleetKey: string;
  readonly region: string;
  readonly accountId: string;
  /** The key by which models are placed on instances. */
  readonly placementKey: PlacementKey;
  /** Set for the copies of an inference component: each copy's resources of the instance that it shares. */
  readonly component?: ComponentFleetNames;
}

export interface ComponentFleetNames {
  readonly name: string;
  readonly budget: InstanceBudget;
  readonly claimBytes: number;
  /** The node of the shared instances; null for any. */
  readonly node: NodeId | null;
}

/** The dependencies of an endpoint's fleets. */
export interface FleetDependencies {
  readonly fleet: FleetOptions;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
  readonly newId: () => string;
  /**
   * Claims capacity of the nodes for use without a record. Throws AwsError without capacity. The caller disposes the
   * claim when the use has ended.
   */
  readonly claim: (what: () => Footprint, instanceType: string) => Disposable;
  /** Places the fleet's instances on nodes; by default they are accounted to no owner. */
  readonly placer?: InstancePlacer;
  /**
   * Reports the maximum memory of each container of an instance of a model, in their order; zero for those that were
   * not measured.
   */
  readonly memorySeen: (model: ModelRecord, mostBytes: readonly number[]) => void;
}

/** A fleet with instances of its own: it routes requests to them and records their metrics. */
export class Fleet implements VariantFleet {
  readonly #options: FleetOptions;
  readonly #plan: VariantPlan;
  /** Members that get requests. */
  readonly #members: FleetMember[] = [];
  /** Members without new requests, which end after their pending ones. */
  readonly #draining = new Set<FleetMember>();
  /** Draining members whose models are still being loaded on others. */
  readonly #movingModels = new Set<FleetMember>();
  readonly #metrics: VariantMetrics;
  readonly #tasks: TaskGroup;
  readonly #names: FleetNames;
  readonly #endpointName: string;
  readonly #dependencies: FleetDependencies;
  readonly #sessions: SessionTable<FleetMember>;
  readonly #openMember: (ordinal: number, kept: KeptInstance | null, placed: NodeReservation) => FleetMember;
  readonly #router: ModelRouter;
  readonly #modelContainers: readonly string[];
  readonly #containers: readonly NamedContainer[];
  readonly #memory = new MeasuredMemory();
  readonly #quiet = new ChangeNotifier();
  /** Number of unfinished requests, including those that wait for an instance. */
  #callCount = 0;
  #isSampled = false;
  readonly #concurrency: ConcurrencySampler;

  constructor(plan: VariantPlan, names: FleetNames, parts: FleetDependencies) {
    const options = parts.fleet;
    this.#options = options;
    this.#dependencies = parts;
    this.#plan = plan;
    this.#names = names;
    this.#endpointName = names.endpointName;
    this.#sessions = new SessionTable({
      endpointName: names.endpointName,
      sessionsMax,
      clock: options.clock,
      isServing: (member) => this.#members.includes(member),
    });
    const containers = namedContainers(plan);
    this.#containers = containers;
    const withModels = containers.filter(({ definition }) => definition.Mode === "MultiModel");
    this.#modelContainers = withModels.map(({ name }) => name);
    this.#metrics = new VariantMetrics(options.openSeries, {
      endpoint: names.endpointName,
      variant: plan.variant.VariantName,
      config: names.configName,
      component: names.component?.name ?? null,
      serverless: plan.variant.ServerlessConfig !== undefined,
      multiModel: this.#modelContainers.length > 0,
      containers: containers.filter(({ isOnly }) => !isOnly).map(({ name }) => name),
    });
    const { endpointName, fleetKey } = names;
    const place = placeOf(names, options);
    const shared = { plan, fleet: options, metrics: this.#metrics, place, ownerName: endpointName };
    const modelOutdated = (name: string, target: string) => {
      for (const member of [...this.#members, ...this.#draining]) member.holderOf(name)?.container.recheck(target);
    };
    this.#openMember = (ordinal, kept, placed) => {
      const id = kept?.id ?? parts.newId();
      const logStream = `${plan.variant.VariantName}/${id}`;
      const budget = this.#budgetOn(placed);
      const own = { budget, placed, containers: plannedContainers(plan, budget) };
      return new FleetMember({ id, ordinal, fleetKey, logStream, modelOutdated, ...shared, ...own });
    };
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("the supervision of instances has stopped", { error: String(error) });
    });
    const { clock, logger, invocationLimits } = options;
    this.#concurrency = new ConcurrencySampler({
      count: () => this.#callCount / Math.max(1, this.inServiceCount),
      record: (count) => this.#metrics.recordConcurrency(count),
      tasks: this.#tasks,
      clock,
    });
    this.#router = new ModelRouter({
      tasks: this.#tasks,
      key: names.placementKey,
      coldMs: invocationLimits.modelCopyColdMs,
      adoptionMsMax: invocationLimits.restartWaitMsMax,
      clock,
      logger,
    });
  }

  get variantName(): string {
    return this.#plan.variant.VariantName;
  }

  get #instanceBytes(): number {
    const modelBytes = this.#names.component?.claimBytes ?? guaranteedModelBytes(this.#plan);
    return this.#containers.length * containerOwnBytes + modelBytes;
  }

  /** Returns a request for capacity on any node, or only on the given node. */
  #request(node = this.#names.component?.node ?? null): InstanceRequest {
    return { needs: { memoryBytes: this.#instanceBytes }, ...(node !== null && { node }) };
  }

  get #placer(): InstancePlacer {
    return this.#dependencies.placer ?? this.#options.nodes;
  }

  /** Places an instance; where no node has capacity it waits for draining instances of the same owner. */
  async #placed(signal: AbortSignal): Promise<NodeReservation> {
    for (;;) {
      const freed = this.#options.nodes.whenFreed();
      try {
        return this.#placer.place(this.#request());
      } catch (error) {
        if (!this.#placer.isDraining) throw error;
        await rejectOnAbort(freed, signal);
      }
    }
  }

  /**
   * Adopts an instance of the platform's previous run, with a reservation on the node that runs it; null where there is
   * none.
   */
  #claim(ordinal: number): { readonly kept: KeptInstance; readonly placed: NodeReservation } | null {
    const { endpointName, fleetKey } = this.#names;
    const kept = this.#options.host.claim({ endpointName, fleetKey, ordinal });
    return kept === null ? null : { kept, placed: this.#placer.restore(this.#request(kept.node)) };
  }

  #budgetOn({ node }: NodeReservation): InstanceBudget {
    return this.#names.component?.budget ?? variantBudget(this.#plan.variant, (type) => instanceTypeBudget(type, node));
  }

  /** Returns the reserved bytes by container, for each instance with a budget. */
  #reservedBytes(budget: InstanceBudget): ReadonlyMap<string, number> {
    const isServerless = this.#plan.variant.ServerlessConfig !== undefined;
    const claimBytes = this.#names.component?.claimBytes ?? (isServerless ? budget.memoryBytes : null);
    return reservedBytesOf(this.#plan, budget, claimBytes);
  }

  get metrics(): VariantMetrics {
    return this.#metrics;
  }

  get canServe(): boolean {
    return this.#members.some((member) => member.isInService && !member.invocations.isFull);
  }

  get models(): DemandModels | null {
    if (this.#modelContainers.length === 0) return null;
    return { members: this.#members, warmFrom: (from, signal) => this.#warm(from.members, this.#members, signal) };
  }

  get plan(): VariantPlan {
    return this.#plan;
  }

  get inServiceCount(): number {
    let count = 0;
    for (const member of this.#members) if (member.isInService) count += 1;
    return count;
  }

  get unconfined(): Unconfined {
    return Object.assign({}, ...this.#members.map((member) => member.unconfined)) as Unconfined;
  }

  get instanceCount(): number {
    return this.#members.length;
  }

  /** Starts instances; when one of them does not start, none of the new ones is left. */
  async growTo(instanceCount: number, signal: AbortSignal): Promise<number> {
    const presentCount = this.#members.length;
    const missingCount = Math.max(0, instanceCount - presentCount);
    const added: FleetMember[] = [];
    const start = async (_: unknown, index: number) => {
      const ordinal = presentCount + index;
      const claimed = this.#claim(ordinal);
      const placed = claimed?.placed ?? (await this.#placed(signal));
      const member = this.#openMember(ordinal, claimed?.kept ?? null, placed);
      added.push(member);
      await member.start(signal);
    };
    const started = await Promise.allSettled(Array.from({ length: missingCount }, start));
    const failed = started.find((outcome) => outcome.status === "rejected");
    if (failed === undefined) {
      this.#add(added);
      return added.length;
    }
    await Promise.all(added.map((member) => member[Symbol.asyncDispose]()));
    throw failed.reason;
  }

  resume(instanceCount: number): void {
    const claims = Array.from({ length: instanceCount }, (_, ordinal) => ({ ordinal, claimed: this.#claim(ordinal) }));
    const added = claims.map(({ ordinal, claimed }) => {
      return this.#openMember(ordinal, claimed?.kept ?? null, claimed?.placed ?? this.#placer.restore(this.#request()));
    });
    for (const member of added) member.resume();
    this.#router.adopts();
    this.#add(added);
  }

  /** Adds members and samples them at once, so that their metrics exist as soon as the endpoint is in service. */
  #add(added: readonly FleetMember[]): void {
    this.#members.push(...added);
    if (this.#isSampled || added.length === 0) return;
    this.#isSampled = true;
    this.#tasks.run((closing) => this.#sample(closing));
    if (this.#modelContainers.length === 0) return;
    this.#tasks.run((closing) => this.#router.dropCold(this.#members, this.#modelContainers, closing));
  }

  async inService(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#members.map((member) => member.ready(null, signal)));
  }

  async #warm(from: readonly FleetMember[], to: readonly FleetMember[], signal: AbortSignal): Promise<void> {
    const containers = this.#modelContainers;
    if (containers.length === 0) return;
    const serving = to.filter((member) => member.isInService);
    await this.#router.warm(from, serving, { containers, signal });
  }

  /**
   * Drains the last members. They get no more requests, except for models that only they have loaded, until the models
   * in use are loaded on others. Resolves when their requests have ended, or the signal aborts, and they are stopped.
   */
  async shrinkTo({ instanceCount }: FleetSize, signal: AbortSignal): Promise<void> {
    const draining = this.#members.splice(instanceCount);
    for (const member of draining) {
      member.drains();
      this.#draining.add(member);
    }
    this.#sessions.drop(new Set(draining));
    if (draining.length > 0 && this.#modelContainers.length > 0) {
      for (const member of draining) this.#movingModels.add(member);
      await this.#warm(draining, this.#members, signal);
      for (const member of draining) this.#movingModels.delete(member);
    }
    await Promise.all(
      draining.map(async (member) => {
        await member.invocations.idle(signal).catch(() => {});
        await member[Symbol.asyncDispose]();
        this.#draining.delete(member);
      }),
    );
  }

  /** Drains all members; requests that wait for an instance are still served. */
  async drain(signal: AbortSignal): Promise<void> {
    for (const member of this.#members) member.drains();
    while (this.#callCount > 0 && !signal.aborted)
      await rejectOnAbort(this.#quiet.nextChange(), signal).catch(() => {});
    await this.shrinkTo({ instanceCount: 0 }, signal);
    await this[Symbol.asyncDispose]();
  }

  holdsSession(id: string): boolean {
    return this.#sessions.holderOf(id) !== null;
  }

  async invoke(request: InvocationRequest, peerCount: number): Promise<InvocationReply> {
    checkTargets(request, this.#plan.model, this.#endpointName);
    this.#callCount += 1;
    this.#concurrency.touch();
    try {
      if (request.session === undefined) return (await this.#ask(request, peerCount, null)).reply;
      return await this.#sessions.serve(request, (holder) => this.#ask(request, peerCount, holder));
    } finally {
      this.#callCount -= 1;
      if (this.#callCount === 0) this.#quiet.notify();
    }
  }

  /** `chosen`: the only member that may get the request, or null. */
  async #ask(
    request: InvocationRequest,
    peerCount: number,
    chosen: FleetMember | null,
  ): Promise<RoutedSession<FleetMember>> {
    const { targetModel, targetContainer, signal } = request;
    if (targetModel !== null && chosen === null) {
      await this.#router.located(this.#members, { targetModel, targetContainer }, signal);
    }
    let candidates = chosen === null ? this.#candidatesFor(request) : [chosen];
    if (candidates.length === 0) {
      await this.#waitForOne(request);
      candidates = this.#candidatesFor(request);
    }
    if (candidates.length === 0) throw this.#unavailable(request);
    if (request.bounds === undefined) {
      this.#metrics.record("InvocationsPerInstance", 1 / Math.max(peerCount, candidates.length));
    }
    const first = this.#choose(candidates, request);
    if (candidates.length === 1) {
      return { reply: await first.invocations.invoke(request, { mayGoElsewhere: false }), holder: first };
    }
    const body = request.body.bind(request);
    let taken: ReturnType<typeof body> | null = null;
    const again = { ...request, body: () => (taken ??= body()) };
    try {
      return { reply: await first.invocations.invoke(again, { mayGoElsewhere: true }), holder: first };
    } catch (error) {
      if (!(error instanceof NotSent)) throw error;
    }
    // One retry only: a request that ends each container that it reaches must not reach all of them.
    const others = this.#candidatesFor(request).filter((member) => member !== first);
    const second = others.length === 0 ? first : this.#choose(others, request);
    return { reply: await second.invocations.invoke(again, { mayGoElsewhere: false }), holder: second };
  }

  #unavailable(request: InvocationRequest): Error {
    const [member] = this.#members;
    if (member !== undefined) return member.invocations.unavailable(request);
    const text = `Variant ${this.variantName} of endpoint ${this.#endpointName} has no instance in service.`;
    return new AwsError("ServiceUnavailable", text, { statusFallback: 503, cause: new ContainerConnectionLost(text) });
  }

  /** Returns the members that can serve a request; unhealthy ones, and those that would reject it, only if there are no others. */
  #candidatesFor(request: InvocationRequest): readonly FleetMember[] {
    const { targetModel, targetContainer } = request;
    if (targetModel !== null && this.#movingModels.size > 0) {
      const has = (member: FleetMember) =>
        member.serves(targetContainer) && member.holderOf(targetContainer)?.models.copyOf(targetModel) === "loaded";
      const moving = this.#members.some(has) ? [] : [...this.#movingModels].filter(has);
      if (moving.length > 0) return moving;
    }
    const serving = this.#members.filter((member) => member.serves(targetContainer));
    const healthy = preferred(serving, (member) => member.isHealthy);
    return preferred(healthy, ({ invocations }) => invocations.refusalOf(request) === null);
  }

  #choose(candidates: readonly FleetMember[], { targetModel, targetContainer }: InvocationRequest): FleetMember {
    const [only, ...others] = candidates;
    assert(only !== undefined, "there is an instance to choose");
    if (others.length === 0) return only;
    if (targetModel !== null) return this.#router.choose([only, ...others], { targetModel, targetContainer });
    const chance = this.#dependencies.random();
    const isRandom = this.#plan.variant.RoutingConfig?.RoutingStrategy === "RANDOM";
    return (isRandom ? anyOf : leastBusy)(candidates, chance) ?? only;
  }

  async shutDown(): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await Promise.all([...this.#members, ...this.#draining].map((member) => member.shutDown()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await Promise.all([...this.#members, ...this.#draining].map((member) => member[Symbol.asyncDispose]()));
  }

  /** Waits for a short while when all containers are being restarted, instead of failing the request. */
  async #waitForOne({ signal, targetContainer }: InvocationRequest): Promise<void> {
    const { invocationLimits, clock } = this.#options;
    using limit = openDeadline({ clock, afterMs: invocationLimits.restartWaitMsMax, signal });
    await Promise.any(this.#members.map((member) => member.ready(targetContainer, limit.signal))).catch(
      (error: unknown) => {
        if (signal.aborted) throw signal.reason;
        this.#options.logger.warning("no instance restarted in time", { error: String(error) });
      },
    );
  }

  async #sample(closing: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    const metrics = this.#metrics;
    const sampler = new InstanceSampler(clock);
    const to = {
      instance: metrics.recordInstance.bind(metrics),
      container: (name: string) => (metric: ContainerUsageMetric, value: number) =>
        metrics.recordContainerUsage(name, metric, value),
    };
    while (!closing.aborted) {
      for (const member of this.#members) {
        try {
          const usages = await sampler.sample(member, to);
          member.measured(this.#memory.seen(this.#reservedBytes(member.budget), usages));
        } catch (error) {
          logger.warning("an instance could not be sampled", { instance: member.id, error: String(error) });
        }
        if (this.#modelContainers.length > 0 && member.isInService)
          metrics.recordInstance("LoadedModelCount", member.loadedCount);
      }
      sampler.keep(new Set([...this.#members, ...this.#draining].map(({ id }) => id)));
      const { mostBytes } = this.#memory;
      if (mostBytes.size > 0) {
        this.#dependencies.memorySeen(
          this.#plan.model,
          this.#containers.map(({ name }) => mostBytes.get(name) ?? 0),
        );
      }
      await delay(clock, sampleIntervalMs, closing).catch(() => {});
    }
  }
}

/** Returns the members that pass a test, or all if none passes. */
function preferred(members: readonly FleetMember[], passes: (member: FleetMember) => boolean): readonly FleetMember[] {
  if (members.length < 2 || members.every(passes)) return members;
  const passing = members.filter(passes);
  return passing.length === 0 ? members : passing;
}

/** Returns the source of output and errors of a fleet's containers, for messages. */
function placeOf(
  { endpointName, component, region, accountId }: FleetNames,
  { logsLink }: FleetOptions,
): Omit<InvocationSource, "containerName" | "logStreamArn"> {
  const logGroup =
    component === undefined
      ? `/aws/sagemaker/Endpoints/${endpointName}`
      : `/aws/sagemaker/InferenceComponents/${component.name}`;
  return { logGroup, region, accountId, logsLink };
}
