import { systemClock, type Logger } from "../base/index.ts";
import { GpuWatch, hasGpuDriver } from "../gpus/index.ts";
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
