import type { Clock } from "@galatea/base";
import type { InstanceBudget } from "../definitions/index.ts";
import type { GpuUse, InstanceUsage } from "../instances/index.ts";
import type { InstanceMetric } from "../series/index.ts";
import type { FleetMember } from "./fleet-member.ts";

interface CpuSample {
  readonly cpuNs: number;
  readonly atNs: number;
}

type Record = (metric: Exclude<InstanceMetric, "LoadedModelCount">, value: number) => void;

/** Measures what instances and each of their containers use, from one look to the next. */
export class InstanceSampler {
  readonly #clock: Clock;
  /** By the instance's id, or `id/container`. */
  readonly #before = new Map<string, CpuSample>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Nothing is told of an instance as a whole while one of its containers does not run. Gives what was seen. */
  async sample(
    member: FleetMember,
    to: { readonly instance: Record; readonly container: (name: string) => Record },
  ): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]> {
    const { id, budget } = member;
    const usages = await member.usages();
    let total: InstanceUsage | null = { cpuNs: 0, memoryBytes: 0, diskShare: 0, gpus: null };
    for (const [name, usage] of usages) {
      total = total === null || usage === null ? null : sum(total, usage);
      if (usage !== null && usages.length > 1)
        this.#record({ key: `${id}/${name}`, budget }, usage, to.container(name));
    }
    if (total !== null) this.#record({ key: id, budget }, total, to.instance);
    return usages;
  }

  /** What is known of instances that are none of these is forgotten. */
  keep(instanceIds: ReadonlySet<string>): void {
    for (const key of this.#before.keys()) if (!instanceIds.has(key.split("/", 1)[0] ?? "")) this.#before.delete(key);
  }

  #record(of: { readonly key: string; readonly budget: InstanceBudget }, usage: InstanceUsage, record: Record): void {
    const { cpuNs, memoryBytes, diskShare, gpus } = usage;
    const { key, budget } = of;
    const atNs = this.#clock.monotonicNs();
    const last = this.#before.get(key);
    this.#before.set(key, { cpuNs, atNs });
    // Less than before: a container was started again.
    if (last !== undefined && cpuNs >= last.cpuNs) {
      record("CPUUtilization", (100 * (cpuNs - last.cpuNs)) / (atNs - last.atNs));
    }
    record("MemoryUtilization", Math.min(100, (100 * memoryBytes) / budget.memoryBytes));
    record("DiskUtilization", 100 * diskShare);
    if (gpus === null) return;
    record("GPUUtilization", 100 * gpus.busy);
    record("GPUMemoryUtilization", 100 * gpus.memory);
  }
}

function sum(one: InstanceUsage, other: InstanceUsage): InstanceUsage {
  return {
    cpuNs: one.cpuNs + other.cpuNs,
    memoryBytes: one.memoryBytes + other.memoryBytes,
    diskShare: Math.max(one.diskShare, other.diskShare),
    gpus: sumOfGpus(one.gpus, other.gpus),
  };
}

/** Containers on one GPU share its time, of which each is told the whole. */
function sumOfGpus(one: GpuUse | null, other: GpuUse | null): GpuUse | null {
  if (one === null || other === null) return one ?? other;
  return { busy: Math.max(one.busy, other.busy), memory: one.memory + other.memory };
}
