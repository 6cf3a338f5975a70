import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { GpuReading } from "../native/index.ts";

/** Returns whether NVIDIA's kernel module is loaded. `root` is the machine's file system. */
export function hasGpuDriver(root = "/"): boolean {
  return existsSync(join(root, "dev/nvidiactl"));
}

/**
 * Returns the number of GPUs on which models can be placed: those with a device file in this machine or container. `visible`
 * (CUDA_VISIBLE_DEVICES; null when unset) restricts the result to the GPUs that it names.
 */
export function visibleGpuCount(visible: string | null, root = "/"): number {
  const present = hasGpuDriver(root) ? countDevices(join(root, "dev")) : 0;
  return visible === null || present === 0 ? present : namedGpus(visible, present).length;
}

/** Returns the device files that a program needs to use a GPU. Some of them are created when a program first uses a GPU. */
export function gpuDevices(root = "/"): readonly string[] {
  const directory = join(root, "dev");
  if (!hasGpuDriver(root)) return [];
  const named = readdirSync(directory).filter((name) => /^nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset|-caps)$/.test(name));
  return named.toSorted().map((name) => join(directory, name));
}

/** Returns the readings of the GPUs that are visible to CUDA, each with its CUDA number. */
export function visibleReadings(readings: readonly GpuReading[], visible: string | null): readonly GpuReading[] {
  if (visible === null) return readings;
  return namedGpus(visible, readings.length).flatMap(
    (name) => readings.find(({ index, uuid }) => String(index) === name || uuid.startsWith(name)) ?? [],
  );
}

/**
 * Returns the GPUs that `visible` names, in order: their positions are their CUDA numbers. Like CUDA, stops at the first one that is
 * absent.
 */
function namedGpus(visible: string, present: number): readonly string[] {
  const named: string[] = [];
  for (const segment of visible.split(",")) {
    const name = segment.trim();
    const isNumber = /^\d+$/.test(name);
    if (!isNumber && !/^(GPU|MIG)-/.test(name)) break;
    if (isNumber && Number(name) >= present) break;
    // CUDA shows no GPUs at all if the variable names one of them twice.
    if (named.includes(name)) return [];
    named.push(name);
  }
  return named;
}

function countDevices(directory: string): number {
  return readdirSync(directory).filter((name) => /^nvidia\d+$/.test(name)).length;
}
