import { TaskGroup, delay, openDeadline } from "../../base/index.ts";
import type { VariantPlan } from "../definitions/index.ts";
import type { Unconfined } from "../instances/index.ts";
import type { InvocationPlace, InvocationReply, InvocationRequest } from "../invocations/index.ts";
import { VariantMetrics } from "../series/index.ts";
import { FleetMember } from "./fleet-member.ts";
import type { FleetOptions } from "./fleet-options.ts";
import { chooseInstance, leastBusy } from "./routing.ts";

const sampleIntervalMs = 20_000;
/** The part of an instance's memory that its models may take; the rest is the container's own. */
const modelMemoryShare = 0.9;
const volumeGiBDefault = 30;
const gibi = 2 ** 30;

/** One variant of a running endpoint: its instances, where a request goes, and its metrics. */
export class Fleet implements AsyncDisposable {
  readonly #options: FleetOptions;
  readonly #plan: VariantPlan;
  readonly #members: FleetMember[] = [];
  readonly #metrics: VariantMetrics;
  readonly #tasks: TaskGroup;
  weight: number;

  constructor(
    plan: VariantPlan,
    names: {
      readonly endpointName: string;
      readonly configName: string;
      readonly region: string;
      readonly accountId: string;
      readonly instanceIds: readonly string[];
    },
    options: FleetOptions,
  ) {
    this.#options = options;
    this.#plan = plan;
    this.weight = plan.variant.InitialVariantWeight;
    this.#metrics = new VariantMetrics(options.openSeries, {
      endpoint: names.endpointName,
      variant: plan.variant.VariantName,
      config: names.configName,
      multiModel: this.isMultiModel,
    });
    const { endpointName, region, accountId } = names;
    const place: Omit<InvocationPlace, "logStreamArn"> = {
      endpointName,
      region,
      accountId,
      logsLink: options.logsLink,
    };
    const budget = options.host.budgetOf(plan.variant.InstanceType);
    const volumeBytes = (plan.variant.VolumeSizeInGB ?? volumeGiBDefault) * gibi;
    const lowered = (name: string, bytes: number) => lower(plan.model.containers[0].Environment?.[name], bytes);
    for (const id of names.instanceIds) {
      const member = new FleetMember({
        id,
        plan,
        budget,
        modelMemoryBytes: lowered("GALATEA_MODEL_MEMORY_BYTES", Math.floor(budget.memoryBytes * modelMemoryShare)),
        modelDiskBytes: lowered("GALATEA_MODEL_DISK_BYTES", volumeBytes),
        fleet: options,
        metrics: this.#metrics,
        place,
      });
      this.#members.push(member);
    }
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("instance metrics are no longer sampled", { error: String(error) });
    });
  }

  get variantName(): string {
    return this.#plan.variant.VariantName;
  }

  get isMultiModel(): boolean {
    return this.#plan.model.containers[0].Mode === "MultiModel";
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
    let candidates = this.#members.filter((member) => member.isInService);
    if (candidates.length === 0) {
      await this.#waitForOne(request.signal);
      candidates = this.#members.filter((member) => member.isInService);
      if (candidates.length === 0) throw (this.#members[0] as FleetMember).invocations.unavailable(request);
    }
    this.#metrics.record("InvocationsPerInstance", 1 / Math.max(1, candidates.length));
    const chosen = this.isMultiModel ? chooseInstance(candidates, request.targetModel ?? "") : leastBusy(candidates);
    return await (chosen as FleetMember).invocations.invoke(request);
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
  async #waitForOne(signal: AbortSignal): Promise<void> {
    const { invocationLimits, clock } = this.#options;
    using limit = openDeadline({ clock, afterMs: invocationLimits.restartWaitMsMax, signal });
    await Promise.any(this.#members.map((member) => member.ready(limit.signal))).catch((error: unknown) => {
      if (signal.aborted) throw signal.reason;
      this.#options.logger.warning("no instance came back in time", { error: String(error) });
    });
  }

  async #sample(closing: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    const before = new Map<string, CpuSample>();
    while (!closing.aborted) {
      for (const member of this.#members) {
        await this.#sampleMember(member, before).catch((error: unknown) => {
          logger.warning("an instance could not be sampled", { instance: member.id, error: String(error) });
        });
      }
      await delay(clock, sampleIntervalMs, closing).catch(() => {});
    }
  }

  async #sampleMember(member: FleetMember, before: Map<string, CpuSample>): Promise<void> {
    const { clock, host } = this.#options;
    const usage = await member.usage();
    if (usage === null) return;
    const { cpuNs } = usage;
    const atNs = clock.monotonicNs();
    const last = before.get(member.id);
    before.set(member.id, { cpuNs, atNs });
    const budget = host.budgetOf(this.#plan.variant.InstanceType);
    if (last !== undefined && cpuNs >= last.cpuNs) {
      this.#metrics.recordInstance("CPUUtilization", (100 * (cpuNs - last.cpuNs)) / (atNs - last.atNs));
    }
    const memoryPercent = Math.min(100, (100 * usage.memoryBytes) / budget.memoryBytes);
    this.#metrics.recordInstance("MemoryUtilization", memoryPercent);
    this.#metrics.recordInstance("DiskUtilization", 100 * usage.diskShare);
    if (this.isMultiModel) this.#metrics.recordInstance("LoadedModelCount", member.loadedCount);
  }
}

interface CpuSample {
  readonly cpuNs: number;
  readonly atNs: number;
}

/** A model's variable may lower a budget, never raise it. */
function lower(text: string | undefined, bytes: number): number {
  const wanted = Number(text ?? Number.NaN);
  return Number.isSafeInteger(wanted) && wanted > 0 ? Math.min(wanted, bytes) : bytes;
}
