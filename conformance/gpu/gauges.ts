/** The values that nvidia-smi reports for a GPU, in the units of our gauges. */
export interface SmiGpu {
  readonly uuid: string;
  readonly memoryTotalBytes: number;
  readonly memoryUsedBytes: number;
  readonly powerLimitWatts: number;
}

export const smiQuery = "uuid,memory.total,memory.used,power.limit";

const mebibyte = 2 ** 20;

/** Parses the output of `nvidia-smi --query-gpu=... --format=csv,noheader,nounits`. */
export function parseSmi(text: string): readonly SmiGpu[] {
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const [uuid = "", total, used, limit] = line.split(",").map((each) => each.trim());
      return {
        uuid,
        memoryTotalBytes: Number(total) * mebibyte,
        memoryUsedBytes: Number(used) * mebibyte,
        powerLimitWatts: Number(limit),
      };
    });
}

/** Used and total memory may differ, because the driver rounds and processes start and end between the two readings. */
const memoryToleranceBytes = 64 * mebibyte;
const wattsTolerance = 1;

/** Returns the differences between an exposition and nvidia-smi; empty if there are none. */
export function gaugeProblems(exposition: string, gpus: readonly SmiGpu[]): readonly string[] {
  return gpus.flatMap((gpu) => {
    const value = (name: string) => {
      const line = exposition.split("\n").find((each) => each.startsWith(`${name}{gpu_uuid="${gpu.uuid}"}`));
      return line === undefined ? null : Number(line.slice(line.lastIndexOf(" ")));
    };
    const near = (name: string, expected: number, tolerance: number) => {
      const found = value(name);
      if (found !== null && (Number.isNaN(expected) || Math.abs(found - expected) <= tolerance)) return [];
      return [`${name} of ${gpu.uuid} is ${found ?? "absent"}, and nvidia-smi says ${expected}`];
    };
    const share = value("nv_gpu_utilization");
    return [
      ...near("nv_gpu_memory_total_bytes", gpu.memoryTotalBytes, memoryToleranceBytes),
      ...near("nv_gpu_memory_used_bytes", gpu.memoryUsedBytes, memoryToleranceBytes),
      ...near("nv_gpu_power_limit", gpu.powerLimitWatts, wattsTolerance),
      ...(share !== null && share >= 0 && share <= 1
        ? []
        : [`nv_gpu_utilization of ${gpu.uuid} is ${share ?? "absent"}`]),
    ];
  });
}
