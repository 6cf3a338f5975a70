import type { GaugeFamily, MetricRegistry } from "./registry.ts";

/** Readings of one GPU. A reading is null if the GPU does not report it. */
export interface GpuReadings {
  readonly uuid: string;
  readonly utilization: number | null;
  readonly memoryTotalBytes: number | null;
  readonly memoryUsedBytes: number | null;
  readonly powerWatts: number | null;
  readonly powerLimitWatts: number | null;
  /** Energy since the server started. */
  readonly energyJoules: number | null;
}

/** Triton's names and help texts, and the reading that each gauge shows. */
const gauges = [
  ["nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", "utilization"],
  ["nv_gpu_memory_total_bytes", "GPU total memory, in bytes", "memoryTotalBytes"],
  ["nv_gpu_memory_used_bytes", "GPU used memory, in bytes", "memoryUsedBytes"],
  ["nv_gpu_power_usage", "GPU power usage in watts", "powerWatts"],
  ["nv_gpu_power_limit", "GPU power management limit in watts", "powerLimitWatts"],
] as const satisfies readonly (readonly [string, string, keyof GpuReadings])[];

/**
 * Registers the nv_gpu_* gauges and nv_energy_consumption, and returns the function that updates them. Each has a row
 * for every GPU that reports the value. The rows of a GPU that stops reporting are removed, except for
 * nv_energy_consumption. A counter that is removed and returns at 0 would look like a restart of the server.
 */
export function createGpuMetrics(registry: MetricRegistry, read: () => readonly GpuReadings[]): () => void {
  const families = gauges.map(([name, help, field]) => ({
    family: registry.gauge(name, help),
    field,
    shown: new Set<string>(),
  }));
  const energy = registry.counter(
    "nv_energy_consumption",
    "GPU energy consumption in joules since the Triton Server started",
  );
  return () => {
    const figures = read();
    for (const { family, field, shown } of families) show(family, shown, figures, field);
    for (const { uuid, energyJoules } of figures) {
      if (energyJoules === null) continue;
      const row = energy.row({ gpu_uuid: uuid });
      row.add(Math.max(0, energyJoules - row.value));
    }
  };
}

function show(
  family: GaugeFamily,
  shown: Set<string>,
  figures: readonly GpuReadings[],
  field: (typeof gauges)[number][2],
): void {
  const reported = new Set<string>();
  for (const figure of figures) {
    const value = figure[field];
    if (value === null) continue;
    reported.add(figure.uuid);
    family.row({ gpu_uuid: figure.uuid }).set(value);
  }
  for (const uuid of shown) if (!reported.has(uuid)) family.remove({ gpu_uuid: uuid });
  shown.clear();
  for (const uuid of reported) shown.add(uuid);
}
