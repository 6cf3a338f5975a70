import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Whether NVIDIA's kernel module is there. `root` is the machine's file system. */
export function hasGpuDriver(root = "/"): boolean {
  return existsSync(join(root, "dev/nvidiactl"));
}

/**
 * How many GPUs models can be placed on: those whose devices are in this machine or container, of which `visible`
 * (CUDA_VISIBLE_DEVICES; null where it is not set) may name some. CUDA numbers them from 0 on, and stops at the first that is not there.
 */
export function visibleGpuCount(visible: string | null, root = "/"): number {
  const present = hasGpuDriver(root) ? countDevices(join(root, "dev")) : 0;
  if (visible === null) return present;
  const named: string[] = [];
  for (const part of visible.split(",")) {
    const name = part.trim();
    const isNumber = /^\d+$/.test(name);
    if (!isNumber && !/^(GPU|MIG)-/.test(name)) break;
    if (isNumber && Number(name) >= present) break;
    // CUDA shows none at all where one is named twice.
    if (named.includes(name)) return 0;
    named.push(name);
  }
  return present === 0 ? 0 : named.length;
}

function countDevices(directory: string): number {
  return readdirSync(directory).filter((name) => /^nvidia\d+$/.test(name)).length;
}
