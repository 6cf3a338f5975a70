import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { GpuReading } from "../native/index.ts";

/** Whether NVIDIA's kernel module is there. `root` is the machine's file system. */
export function hasGpuDriver(root = "/"): boolean {
  return existsSync(join(root, "dev/nvidiactl"));
}

/**
 * How many GPUs models can be placed on: those whose devices are in this machine or container, of which `visible`
 * (CUDA_VISIBLE_DEVICES; null where it is not set) may name some.
 */
export function visibleGpuCount(visible: string | null, root = "/"): number {
  const present = hasGpuDriver(root) ? countDevices(join(root, "dev")) : 0;
  return visible === null || present === 0 ? present : namedGpus(visible, present).length;
}

/** The devices that a program on a GPU opens, as they are now: some are made when a program first asks for them. */
export function gpuDevices(root = "/"): readonly string[] {
  const directory = join(root, "dev");
  if (!hasGpuDriver(root)) return [];
  const named = readdirSync(directory).filter((name) => /^nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset|-caps)$/.test(name));
  return named.toSorted().map((name) => join(directory, name));
}

/** The readings of GPUs that CUDA shows, each at the number that it has there. */
export function asCudaNumbers(readings: readonly GpuReading[], visible: string | null): readonly GpuReading[] {
  if (visible === null) return readings;
  return namedGpus(visible, readings.length).flatMap(
    (name) => readings.find(({ index, uuid }) => String(index) === name || uuid.startsWith(name)) ?? [],
  );
}

/** CUDA numbers those that are named from 0 on, and stops at the first that is not there. */
function namedGpus(visible: string, present: number): readonly string[] {
  const named: string[] = [];
  for (const part of visible.split(",")) {
    const name = part.trim();
    const isNumber = /^\d+$/.test(name);
    if (!isNumber && !/^(GPU|MIG)-/.test(name)) break;
    if (isNumber && Number(name) >= present) break;
    // CUDA shows none at all where one is named twice.
    if (named.includes(name)) return [];
    named.push(name);
  }
  return named;
}

function countDevices(directory: string): number {
  return readdirSync(directory).filter((name) => /^nvidia\d+$/.test(name)).length;
}
