import type { DeviceBytes, MemoryDevice } from "@galatea/server/backends";
import { systemClock, type Logger } from "@galatea/base";
import { asCudaNumbers, GpuWatch, hasGpuDriver, visibleGpuCount } from "@galatea/server/gpus";
import { runnerEnvironment } from "./passed-environment.ts";

type Environment = Readonly<Record<string, string | undefined>>;
/** What is read of a GPU here. */
type Reading = Parameters<typeof asCudaNumbers>[0][number];

/** What of the machine's GPUs the server uses. */
export interface OpenedGpus extends AsyncDisposable {
  /** How many models may be placed on. */
  readonly count: number;
  /** What was free of each at the start: models have all of it. One that did not tell has no bound. */
  readonly budgets: DeviceBytes;
  /** What processes hold of them now. */
  readonly bytesOf: (pids: readonly number[]) => Promise<DeviceBytes>;
  /** Null where NVIDIA's driver is not there. */
  readonly watch: GpuWatch | null;
}

/** Triton reads its gauges twice in each interval. */
const readingsInInterval = 2;
const intervalMsMin = 100;
/** A driver that takes longer for its first answer bounds nothing. */
const firstMsMax = 5000;
const answerMsMax = 2000;

/** Reads GPUs from now on, where NVIDIA's driver is. */
export async function openGpus(environment: Environment, intervalMs: number, log: Logger): Promise<OpenedGpus> {
  const visible = environment["CUDA_VISIBLE_DEVICES"] ?? null;
  const watch = watchGpus(Math.max(intervalMsMin, Math.ceil(intervalMs / readingsInInterval)), log);
  const first = (await watch?.firstReading(firstMsMax)) ?? [];
  return {
    count: visibleGpuCount(visible),
    budgets: freeBytes(asCudaNumbers(first, visible)),
    bytesOf: async (pids) => usedDeviceBytes(asCudaNumbers((await watch?.readNow(answerMsMax)) ?? [], visible), pids),
    watch,
    [Symbol.asyncDispose]: async () => await watch?.[Symbol.asyncDispose](),
  };
}

/** What is free of each GPU that tells. */
export function freeBytes(readings: readonly Reading[]): DeviceBytes {
  return new Map(
    readings.flatMap(({ memoryTotalBytes: total, memoryUsedBytes: used }, gpu): [MemoryDevice, number][] =>
      total === null || used === null ? [] : [[`gpu ${gpu}`, total - used]],
    ),
  );
}

/** What these processes hold of each GPU, where they hold something. */
export function usedDeviceBytes(readings: readonly Reading[], pids: readonly number[]): DeviceBytes {
  const wanted = new Set(pids);
  return new Map(
    readings.flatMap(({ processes }, gpu): [MemoryDevice, number][] => {
      const bytes = processes.reduce((sum, { pid, memoryBytes }) => sum + (wanted.has(pid) ? memoryBytes : 0), 0);
      return bytes === 0 ? [] : [[`gpu ${gpu}`, bytes]];
    }),
  );
}

/** CUDA numbers GPUs by their speed unless it is told to do so by their place, as the driver's library does. */
export function withGpuOrder(
  environment: Readonly<Record<string, string>>,
  gpuCount: number,
): Readonly<Record<string, string>> {
  return gpuCount === 0 ? environment : { CUDA_DEVICE_ORDER: "PCI_BUS_ID", ...environment };
}

/** Null where NVIDIA's driver is not there. */
export function watchGpus(intervalMs: number, log: Logger): GpuWatch | null {
  if (!hasGpuDriver()) return null;
  return new GpuWatch({ intervalMs, clock: systemClock, log, random: Math.random, env: runnerEnvironment() });
}
