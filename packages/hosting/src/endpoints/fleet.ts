import { ChangeNotifier, TaskGroup, delay, rejectOnAbort } from "@galatea/base";
import { variantBudget, type InstanceBudget, type ModelRecord, type VariantPlan } from "../definitions/index.ts";
import { instanceTypeBudget, type InstancePlacer, type InstanceRequest, type NodeReservation } from "../nodes/index.ts";
import type { AdoptableInstance, MissingIsolation } from "../instances/index.ts";
import {
  checkTargets,
  ContainerConnectionLost,
  type InvocationReply,
  type InvocationRequest,
} from "../invocations/index.ts";
import { VariantMetrics, type ContainerUsageMetric } from "../series/index.ts";
import type { Footprint } from "./endpoint-record.ts";
import { VariantInstance } from "./variant-instance.ts";
import { invocationSource, type FleetIdentity } from "./fleet-identity.ts";
import { replaceLostOrDraining, startReplacement } from "./lost-instances.ts";
import type { FleetOptions } from "./fleet-options.ts";
import { ConcurrencySampler } from "./concurrency-sampler.ts";
import { InstanceSampler } from "./instance-sampler.ts";
import { MeasuredMemory, reservedBytesByContainer } from "./measured-memory.ts";
import {
  containerBaseBytes,
  namedContainers,
  planContainers,
  guaranteedModelBytes,
  type NamedContainer,
} from "./planned-containers.ts";
import { InstanceRouting } from "./instance-routing.ts";
import { SessionTable, sessionsMax } from "./session-table.ts";
import { ModelRouter } from "./model-router.ts";
import type { OnDemandModels, FleetSize, VariantFleet } from "./variant-fleet.ts";

const sampleIntervalMs = 20_000;

/** The dependencies of an endpoint's fleets. */
export interface FleetDependencies {
  readonly fleet: FleetOptions;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  readonly newId: () => string;
  /**
   * Reserves node capacity for instances that no record contains. Throws AwsError if there is not enough capacity. The
   * caller disposes the result when the instances have ended.
   */
  readonly claim: (what: () => Footprint, instanceType: string) => Disposable;
  /**
   * Places the fleet's instances on nodes. Without a placer, `fleet.nodes` places them, and their memory belongs to no
   * owner.
   */
  readonly placer?: InstancePlacer;
  /** Records the maximum measured bytes of memory of each container of a model, in their order; zero if not measured. */
  readonly memorySeen: (model: ModelRecord, mostBytes: readonly number[]) => void;
}

/** The instances of one variant. Routes requests to them and records their metrics. */
export class Fleet implements VariantFleet {
  readonly #options: FleetOptions;
  readonly #plan: VariantPlan;
  /** Instances that get requests. */
  readonly #members: VariantInstance[] = [];
  /** Instances that get no new requests and stop after the requests in flight. */
  readonly #draining = new Set<VariantInstance>();
  /** Draining instances whose models are still being loaded on other instances. */
  readonly #movingModels = new Set<VariantInstance>();
  readonly #metrics: VariantMetrics;
  readonly #tasks: TaskGroup;
  readonly #names: FleetIdentity;
  readonly #endpointName: string;
  readonly #dependencies: FleetDependencies;
  readonly #sessions: SessionTable<VariantInstance>;
  readonly #openMember: (ordinal: number, kept: AdoptableInstance | null, placed: NodeReservation) => VariantInstance;
  readonly #router: ModelRouter;
  readonly #routing: InstanceRouting<VariantInstance>;
  readonly #modelContainers: readonly string[];
  readonly #containers: readonly NamedContainer[];
  readonly #memory = new MeasuredMemory();
  readonly #becameIdle = new ChangeNotifier();
  /** Number of requests in flight, including those that wait for an instance. */
  #callCount = 0;
  #isSampled = false;
  readonly #concurrency: ConcurrencySampler;

  constructor(plan: VariantPlan, names: FleetIdentity, dependencies: FleetDependencies) {
    const options = dependencies.fleet;
    this.#options = options;
    this.#dependencies = dependencies;
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
    const location = invocationSource(names, options);
    const shared = { plan, fleet: options, metrics: this.#metrics, place: location, ownerName: endpointName };
    const modelOutdated = (name: string, target: string) => {
      for (const member of [...this.#members, ...this.#draining]) member.holderOf(name)?.container.recheck(target);
    };
    this.#openMember = (ordinal, kept, placed) => {
      const id = kept?.id ?? dependencies.newId();
      const logStream = `${plan.variant.VariantName}/${id}`;
      const budget = this.#budgetOn(placed);
      const own = { budget, placed, containers: planContainers(plan, budget) };
      return new VariantInstance({ id, ordinal, fleetKey, logStream, modelOutdated, ...shared, ...own });
    };
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("bug: the supervision of a fleet's instances has stopped", { error: String(error) });
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
    const among = { members: this.#members, moving: this.#movingModels, router: this.#router };
    const by = { metrics: this.#metrics, random: dependencies.random, limits: invocationLimits, clock, logger };
    this.#routing = new InstanceRouting({ endpointName, plan, passesOn: false, ...among, ...by });
  }

  get variantName(): string {
    return this.#plan.variant.VariantName;
  }

  get #instanceBytes(): number {
    const modelBytes = this.#names.component?.claimBytes ?? guaranteedModelBytes(this.#plan);
    return this.#containers.length * containerBaseBytes + modelBytes;
  }

  /** Returns a request for capacity on any node, or only on the given node. */
  #request(node = this.#names.component?.node ?? null): InstanceRequest {
    return { needs: { memoryBytes: this.#instanceBytes }, ...(node !== null && { node }) };
  }

  get #placer(): InstancePlacer {
    return this.#dependencies.placer ?? this.#options.nodes;
  }

  /** Reserves node capacity for an instance. If no node has capacity, waits for draining instances of the same owner. */
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

  /** Adopts an instance that kept running during a restart of the platform, and reserves its resources; null if there is none. */
  #claim(ordinal: number): { readonly kept: AdoptableInstance; readonly placed: NodeReservation } | null {
    const { endpointName, fleetKey } = this.#names;
    const kept = this.#options.host.claim({ endpointName, fleetKey, ordinal });
    return kept === null ? null : { kept, placed: this.#placer.restore(this.#request(kept.node)) };
  }

  #budgetOn({ node }: NodeReservation): InstanceBudget {
    return this.#names.component?.budget ?? variantBudget(this.#plan.variant, (type) => instanceTypeBudget(type, node));
  }

  /** Returns the reserved bytes of memory of each container of an instance with this budget. */
  #reservedBytes(budget: InstanceBudget): ReadonlyMap<string, number> {
    const isServerless = this.#plan.variant.ServerlessConfig !== undefined;
    const claimBytes = this.#names.component?.claimBytes ?? (isServerless ? budget.memoryBytes : null);
    return reservedBytesByContainer(this.#plan, budget, claimBytes);
  }

  get metrics(): VariantMetrics {
    return this.#metrics;
  }

  get canServe(): boolean {
    return this.#members.some((member) => member.isInService && !member.invocations.isFull);
  }

  get models(): OnDemandModels | null {
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

  get unconfined(): MissingIsolation {
    return Object.assign({}, ...this.#members.map((member) => member.unconfined)) as MissingIsolation;
  }

  get instanceCount(): number {
    return this.#members.length;
  }

  /** Starts additional instances. If one of them fails to start, all of the additional instances are removed. */
  async growTo(instanceCount: number, signal: AbortSignal): Promise<number> {
    const presentCount = this.#members.length;
    const missingCount = Math.max(0, instanceCount - presentCount);
    const start = async (_: unknown, index: number): Promise<VariantInstance> => {
      const ordinal = presentCount + index;
      const attemptsMax = this.#options.nodes.all.length;
      for (let [claimed, attempt] = [this.#claim(ordinal), 1]; ; [claimed, attempt] = [null, attempt + 1]) {
        const placed = claimed?.placed ?? (await this.#placed(signal));
        const member = this.#openMember(ordinal, claimed?.kept ?? null, placed);
        try {
          await member.start(signal);
          return member;
        } catch (error) {
          // A node whose agent does not respond counts as a node without capacity. The next attempt chooses another
          // node or fails.
          if (!(error instanceof ContainerConnectionLost) || attempt >= attemptsMax) throw error;
        }
      }
    };
    const started = await Promise.allSettled(Array.from({ length: missingCount }, start));
    const failed = started.find((outcome) => outcome.status === "rejected");
    // Instances are added in the order of their ordinals, not in the order in which they started.
    const added = started.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
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

  /** Adds instances and samples them immediately, so that their metrics exist when the endpoint is in service. */
  #add(added: readonly VariantInstance[]): void {
    this.#members.push(...added);
    if (this.#options.replacesLost) for (const member of added) this.#keep(member);
    if (this.#isSampled || added.length === 0) return;
    this.#isSampled = true;
    this.#tasks.run((closing) => this.#sample(closing));
    if (this.#modelContainers.length === 0) return;
    this.#tasks.run((closing) => this.#router.dropCold(this.#members, this.#modelContainers, closing));
  }

  #keep(member: VariantInstance): void {
    const { nodes } = this.#options;
    const isMember = () => this.#members.includes(member);
    const replace = (closing: AbortSignal) => this.#replace(member, closing);
    this.#tasks.run((closing) => replaceLostOrDraining(member, { nodes, isMember, replace }, closing));
  }

  /** Replaces a lost or draining instance with a new one that has the same ordinal. Resolves with false if it cannot. */
  async #replace(left: VariantInstance, closing: AbortSignal): Promise<boolean> {
    const { logger } = this.#options;
    const open = () => this.#openMember(left.ordinal, null, this.#placer.place(this.#request()));
    const warm = (member: VariantInstance) => this.#warm([left], [member], closing);
    const member = await startReplacement(left, { open, warm, logger }, closing);
    if (member === null) return false;
    const index = this.#members.indexOf(left);
    if (index === -1) {
      await member[Symbol.asyncDispose]();
      return true;
    }
    logger.warning("an instance is lost; another one replaces it", { instance: left.id, by: member.id });
    this.#members[index] = member;
    this.#sessions.drop(new Set([left]));
    this.#keep(member);
    this.#tasks.run((ending) => this.#stopReplaced(left, ending));
    return true;
  }

  /** Stops an instance that gets no more requests: at once if it is lost, otherwise after its requests in flight. */
  async #stopReplaced(left: VariantInstance, ending: AbortSignal): Promise<void> {
    left.drains();
    this.#draining.add(left);
    if (!left.isLost) await left.invocations.idle(ending).catch(() => {});
    await left[Symbol.asyncDispose]();
    this.#draining.delete(left);
  }

  async inService(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#members.map((member) => member.ready(null, signal)));
  }

  async #warm(from: readonly VariantInstance[], to: readonly VariantInstance[], signal: AbortSignal): Promise<void> {
    const containers = this.#modelContainers;
    if (containers.length === 0) return;
    const serving = to.filter((member) => member.isInService);
    await this.#router.warm(from, serving, { containers, signal });
  }

  /**
   * Drains the last instances until `instanceCount` are left. Models that only the draining instances have loaded are
   * loaded on other instances first. Resolves when the drained instances are stopped: after their requests have ended or
   * the signal has aborted.
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

  /** Drains all instances. Requests that already wait for an instance are still served. */
  async drain(signal: AbortSignal): Promise<void> {
    for (const member of this.#members) member.drains();
    while (this.#callCount > 0 && !signal.aborted)
      await rejectOnAbort(this.#becameIdle.nextChange(), signal).catch(() => {});
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
      if (request.session === undefined) return (await this.#routing.invoke(request, peerCount, null)).reply;
      return await this.#sessions.serve(request, (holder) => this.#routing.invoke(request, peerCount, holder));
    } finally {
      this.#callCount -= 1;
      if (this.#callCount === 0) this.#becameIdle.notify();
    }
  }

  async shutDown(): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await Promise.all([...this.#members, ...this.#draining].map((member) => member.shutDown()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await Promise.all([...this.#members, ...this.#draining].map((member) => member[Symbol.asyncDispose]()));
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
