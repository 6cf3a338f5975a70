import { systemClock, type Logger } from "../base/index.ts";
import { GpuWatch, hasGpuDriver, visibleGpuCount } from "../gpus/index.ts";
import { runnerEnvironment } from "./passed-environment.ts";

/** Triton reads its gauges twice in each interval. */
const readingsInInterval = 2;
const intervalMsMin = 100;

/** Reads GPUs from now on, where NVIDIA's driver is and they are to be shown; null otherwise. */
export function openGpus(areShown: boolean, intervalMs: number, log: Logger): GpuWatch | null {
  if (!areShown || !hasGpuDriver()) return null;
  return new GpuWatch({
    intervalMs: Math.max(intervalMsMin, Math.ceil(intervalMs / readingsInInterval)),
    clock: systemClock,
    log,
    random: Math.random,
    env: runnerEnvironment(),
  });
}

/** How many GPUs models may be placed on. */
export function gpuCountOf(environment: Readonly<Record<string, string | undefined>>): number {
  return visibleGpuCount(environment["CUDA_VISIBLE_DEVICES"] ?? null);
}

/** CUDA numbers GPUs by their speed unless it is told to do so by their place, as the driver's library does. */
export function withGpuOrder(
  environment: Readonly<Record<string, string>>,
  gpuCount: number,
): Readonly<Record<string, string>> {
  return gpuCount === 0 ? environment : { CUDA_DEVICE_ORDER: "PCI_BUS_ID", ...environment };
}
