import type { Clock } from "@galatea/base";
import type { InstanceBudget } from "../definitions/index.ts";
import type { GpuUsage, InstanceUsage } from "../instances/index.ts";
import type { InstanceMetric } from "../series/index.ts";
import type { VariantInstance } from "./variant-instance.ts";

interface CpuSample {
  readonly cpuNs: number;
  readonly atNs: number;
}

type Record = (metric: Exclude<InstanceMetric, "LoadedModelCount">, value: number) => void;

/** Measures the CPU, memory, disk and GPU usage of instances and their containers. CPU usage is computed between two samples. */
export class InstanceSampler {
  readonly #clock: Clock;
  /** Previous CPU samples, by instance id or by `id/container`. */
  readonly #before = new Map<string, CpuSample>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Samples an instance, records the metrics and returns the usage of its containers. While one of the containers does
   * not run, no metrics are recorded for the instance as a whole.
   */
  async sample(
    member: VariantInstance,
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

  /** Discards the samples of all instances that are not in `instanceIds`. */
  keep(instanceIds: ReadonlySet<string>): void {
    for (const key of this.#before.keys()) if (!instanceIds.has(key.split("/", 1)[0] ?? "")) this.#before.delete(key);
  }

  #record(of: { readonly key: string; readonly budget: InstanceBudget }, usage: InstanceUsage, record: Record): void {
    const { cpuNs, memoryBytes, diskShare, gpus } = usage;
    const { key, budget } = of;
    const atNs = this.#clock.monotonicNs();
    const last = this.#before.get(key);
    this.#before.set(key, { cpuNs, atNs });
    // A value below the previous one means that a container was restarted: there is no difference to record.
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

/**
 * Returns the combined GPU usage of two containers. Memory is added. The busy time of a GPU already includes all
 * processes, so the maximum is used.
 */
function sumOfGpus(one: GpuUsage | null, other: GpuUsage | null): GpuUsage | null {
  if (one === null || other === null) return one ?? other;
  return { busy: Math.max(one.busy, other.busy), memory: one.memory + other.memory };
}
