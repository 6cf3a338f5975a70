import type { DeviceBytes, MemoryDevice } from "@galatea/server/backends";
import { systemClock, type Logger } from "@galatea/base";
import { visibleReadings, GpuWatch, hasGpuDriver, visibleGpuCount } from "@galatea/server/gpus";
import { runnerEnvironment } from "./passed-environment.ts";

type Environment = Readonly<Record<string, string | undefined>>;
/** The measured values of one GPU. */
type Reading = Parameters<typeof visibleReadings>[0][number];

/** The machine's GPUs that the server uses. */
export interface OpenedGpus extends AsyncDisposable {
  /** Number of GPUs that models may use. */
  readonly count: number;
  /** Free bytes of each GPU at the start, all of which models may use. A GPU without a reading has no limit. */
  readonly budgets: DeviceBytes;
  /** Resolves with the bytes of each GPU that these processes currently use. */
  readonly bytesOf: (pids: readonly number[]) => Promise<DeviceBytes>;
  /** Null if NVIDIA's driver is not installed. */
  readonly watch: GpuWatch | null;
}

/** Triton, too, reads its gauges twice in each interval. */
const readingsInInterval = 2;
const intervalMsMin = 100;
/** Maximum time to wait for the first reading, in milliseconds. Without a reading, GPUs have no memory limits. */
const firstMsMax = 5000;
const responseMsMax = 2000;

/** Starts reading the GPUs, if NVIDIA's driver is installed. */
export async function openGpus(environment: Environment, intervalMs: number, log: Logger): Promise<OpenedGpus> {
  const visible = environment["CUDA_VISIBLE_DEVICES"] ?? null;
  const watch = watchGpus(Math.max(intervalMsMin, Math.ceil(intervalMs / readingsInInterval)), log);
  const first = (await watch?.firstReading(firstMsMax)) ?? [];
  return {
    count: visibleGpuCount(visible),
    budgets: freeBytes(visibleReadings(first, visible)),
    bytesOf: async (pids) =>
      usedDeviceBytes(visibleReadings((await watch?.readNow(responseMsMax)) ?? [], visible), pids),
    watch,
    [Symbol.asyncDispose]: async () => await watch?.[Symbol.asyncDispose](),
  };
}

/** Returns the free bytes of each GPU with a reading. */
export function freeBytes(readings: readonly Reading[]): DeviceBytes {
  return new Map(
    readings.flatMap(({ memoryTotalBytes: total, memoryUsedBytes: used }, gpu): [MemoryDevice, number][] =>
      total === null || used === null ? [] : [[`gpu ${gpu}`, total - used]],
    ),
  );
}

/** Returns the bytes that these processes use on each GPU. */
export function usedDeviceBytes(readings: readonly Reading[], pids: readonly number[]): DeviceBytes {
  const desired = new Set(pids);
  return new Map(
    readings.flatMap(({ processes }, gpu): [MemoryDevice, number][] => {
      const bytes = processes.reduce((sum, { pid, memoryBytes }) => sum + (desired.has(pid) ? memoryBytes : 0), 0);
      return bytes === 0 ? [] : [[`gpu ${gpu}`, bytes]];
    }),
  );
}

/**
 * Sets CUDA_DEVICE_ORDER. Without it, CUDA numbers GPUs by their speed; the driver's library numbers them by their bus.
 */
export function withGpuOrder(
  environment: Readonly<Record<string, string>>,
  gpuCount: number,
): Readonly<Record<string, string>> {
  return gpuCount === 0 ? environment : { CUDA_DEVICE_ORDER: "PCI_BUS_ID", ...environment };
}

/** Starts reading the GPUs; null if NVIDIA's driver is not installed. */
export function watchGpus(intervalMs: number, log: Logger): GpuWatch | null {
  if (!hasGpuDriver()) return null;
  return new GpuWatch({ intervalMs, clock: systemClock, log, random: Math.random, env: runnerEnvironment() });
}
