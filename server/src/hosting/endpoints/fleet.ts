import { TaskGroup, assert, delay, openDeadline } from "../../base/index.ts";
import type { VariantPlan } from "../definitions/index.ts";
import type { Unconfined } from "../instances/index.ts";
import { NotBegun, type InvocationPlace, type InvocationReply, type InvocationRequest } from "../invocations/index.ts";
import { VariantMetrics, type ContainerUseMetric } from "../series/index.ts";
import { FleetMember } from "./fleet-member.ts";
import type { FleetOptions } from "./fleet-options.ts";
import { InstanceSampler } from "./instance-sampler.ts";
import { plannedContainers } from "./planned-containers.ts";
import { checkTargets } from "./request-targets.ts";
import { anyOf, chooseInstance, leastBusy } from "./routing.ts";

const sampleIntervalMs = 20_000;

/** One variant of a running endpoint: its instances, where a request goes, and its metrics. */
export class Fleet implements AsyncDisposable {
  readonly #options: FleetOptions;
  readonly #plan: VariantPlan;
  readonly #members: FleetMember[] = [];
  readonly #metrics: VariantMetrics;
  readonly #tasks: TaskGroup;
  readonly #endpointName: string;
  readonly #random: () => number;
  readonly weight: number;

  constructor(
    plan: VariantPlan,
    names: {
      readonly endpointName: string;
      readonly configName: string;
      readonly region: string;
      readonly accountId: string;
      readonly instanceIds: readonly string[];
    },
    { fleet: options, random }: { readonly fleet: FleetOptions; readonly random: () => number },
  ) {
    this.#options = options;
    this.#random = random;
    this.#plan = plan;
    this.#endpointName = names.endpointName;
    const budget = options.host.budgetOf(plan.variant.InstanceType);
    const containers = plannedContainers(plan, budget);
    this.weight = plan.variant.InitialVariantWeight;
    this.#metrics = new VariantMetrics(options.openSeries, {
      endpoint: names.endpointName,
      variant: plan.variant.VariantName,
      config: names.configName,
      multiModel: this.#isMultiModel,
      containers: containers.filter(({ isOnly }) => !isOnly).map(({ name }) => name),
    });
    const { endpointName, region, accountId } = names;
    const place: Omit<InvocationPlace, "containerName" | "logStreamArn"> = {
      logGroup: `/aws/sagemaker/Endpoints/${endpointName}`,
      region,
      accountId,
      logsLink: options.logsLink,
    };
    for (const id of names.instanceIds) {
      const shared = { plan, budget, containers, fleet: options, metrics: this.#metrics, place };
      const logStream = `${plan.variant.VariantName}/${id}`;
      this.#members.push(new FleetMember({ id, ownerName: endpointName, logStream, ...shared }));
    }
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("instance metrics are no longer sampled", { error: String(error) });
    });
  }

  get variantName(): string {
    return this.#plan.variant.VariantName;
  }

  get #isMultiModel(): boolean {
    return this.#plan.model.containers.some(({ Mode: mode }) => mode === "MultiModel");
  }

  get plan(): VariantPlan {
    return this.#plan;
  }

  get inServiceCount(): number {
    return this.#members.filter((member) => member.isInService).length;
  }

  get unconfined(): Unconfined {
    return Object.assign({}, ...this.#members.map((member) => member.unconfined)) as Unconfined;
  }

  async start(signal: AbortSignal): Promise<void> {
    const started = await Promise.allSettled(this.#members.map((member) => member.start(signal)));
    const failed = started.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    this.#tasks.run((closing) => this.#sample(closing));
  }

  resume(): void {
    for (const member of this.#members) member.resume();
    this.#tasks.run((closing) => this.#sample(closing));
  }

  async invoke(request: InvocationRequest): Promise<InvocationReply> {
    checkTargets(request, this.#plan.model, this.#endpointName);
    let candidates = this.#candidatesFor(request);
    if (candidates.length === 0) {
      await this.#waitForOne(request);
      candidates = this.#candidatesFor(request);
      if (candidates.length === 0) throw (this.#members[0] as FleetMember).invocations.unavailable(request);
    }
    this.#metrics.record("InvocationsPerInstance", 1 / candidates.length);
    const first = this.#choose(candidates, request);
    if (candidates.length === 1) return await first.invocations.invoke(request, { mayGoElsewhere: false });
    const body = request.body.bind(request);
    let taken: ReturnType<typeof body> | null = null;
    const again = { ...request, body: () => (taken ??= body()) };
    try {
      return await first.invocations.invoke(again, { mayGoElsewhere: true });
    } catch (error) {
      if (!(error instanceof NotBegun)) throw error;
    }
    // Once only: a request that ends each container it comes to is not taken through all of them.
    const others = candidates.filter((member) => member !== first);
    return await this.#choose(others, request).invocations.invoke(again, { mayGoElsewhere: false });
  }

  /** Those that serve it, without those that may be about to end where there are others. */
  #candidatesFor({ targetContainer }: InvocationRequest): readonly FleetMember[] {
    const serving = this.#members.filter((member) => member.serves(targetContainer));
    if (serving.length < 2 || serving.every((member) => member.isTrusted)) return serving;
    const trusted = serving.filter((member) => member.isTrusted);
    return trusted.length === 0 ? serving : trusted;
  }

  #choose(candidates: readonly FleetMember[], { targetModel }: InvocationRequest): FleetMember {
    const chance = this.#random();
    const isRandom = this.#plan.variant.RoutingConfig?.RoutingStrategy === "RANDOM";
    const choose = isRandom ? anyOf : leastBusy;
    const chosen = targetModel === null ? choose(candidates, chance) : chooseInstance(candidates, targetModel);
    assert(chosen !== null, "there is an instance to choose");
    return chosen;
  }

  /** For the platform's end: everything stops, and unpacked models stay for its next life. */
  async leave(): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await Promise.all(this.#members.map((member) => member.leave()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await Promise.all(this.#members.map((member) => member[Symbol.asyncDispose]()));
  }

  /** Every container is being started again: a short while of that is better waited for than reported. */
  async #waitForOne({ signal, targetContainer }: InvocationRequest): Promise<void> {
    const { invocationLimits, clock } = this.#options;
    using limit = openDeadline({ clock, afterMs: invocationLimits.restartWaitMsMax, signal });
    await Promise.any(this.#members.map((member) => member.ready(targetContainer, limit.signal))).catch(
      (error: unknown) => {
        if (signal.aborted) throw signal.reason;
        this.#options.logger.warning("no instance came back in time", { error: String(error) });
      },
    );
  }

  async #sample(closing: AbortSignal): Promise<void> {
    const { clock, logger, host } = this.#options;
    const metrics = this.#metrics;
    const sampler = new InstanceSampler(clock, host.budgetOf(this.#plan.variant.InstanceType));
    const to = {
      instance: metrics.recordInstance.bind(metrics),
      container: (name: string) => (metric: ContainerUseMetric, value: number) =>
        metrics.recordUse(name, metric, value),
    };
    while (!closing.aborted) {
      for (const member of this.#members) {
        await sampler.sample(member, to).catch((error: unknown) => {
          logger.warning("an instance could not be sampled", { instance: member.id, error: String(error) });
        });
        if (this.#isMultiModel && member.isInService) metrics.recordInstance("LoadedModelCount", member.loadedCount);
      }
      await delay(clock, sampleIntervalMs, closing).catch(() => {});
    }
  }
}
