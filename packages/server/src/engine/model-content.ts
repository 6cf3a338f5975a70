import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { machineBytes, type DeviceBytes, type MemoryDevice, type ModelSource } from "../backends/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";

/** Private memory of a new Python worker: the first estimate, which measured costs replace. */
const pythonInstanceBytes = 3 * 1024 * 1024;
const filesMax = 10_000;

/**
 * Returns the content of a version, for estimating its memory. `key` consists of the names and sizes of its files, so that equal archives
 * of many tenants share one estimate. The first estimate is the sum of the sizes, minus `heldBytes` of files that are already in memory and
 * charged to another model.
 */
export async function modelContent(
  source: ModelSource,
  config: ModelConfig,
  heldBytes: number,
): Promise<{ readonly key: string; readonly bytes: number; readonly guessBytes: number }> {
  const rows: string[] = [];
  let bytes = 0;
  const walk = async (directory: string, prefix: string): Promise<void> => {
    for (const each of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
      if (rows.length >= filesMax) return;
      const path = join(directory, each.name);
      if (each.isDirectory()) await walk(path, `${prefix}${each.name}/`);
      else {
        const { size } = await stat(path);
        bytes += size;
        rows.push(`${prefix}${each.name}=${size}`);
      }
    }
  };
  await walk(source.versionDirectory, "");
  const instanceCount = config.instanceGroups.reduce((sum, group) => sum + group.count, 0);
  const newBytes = Math.max(0, bytes - heldBytes);
  const isPython = config.backend === "python";
  return {
    key: [config.backend, devicesText(config), heldBytes > 0 ? "held" : "", ...rows.sort()].join("\n"),
    bytes,
    guessBytes: isPython ? newBytes + instanceCount * pythonInstanceBytes : newBytes * 2,
  };
}

/** Backends that copy a model's weights to the GPU of each instance. */
const weightsOnGpu: ReadonlySet<string> = new Set(["tensorrt", "pytorch"]);

/**
 * Returns the estimated memory of a model that was never measured. The estimate for each GPU is at least the size of the files, once for
 * each instance.
 */
export function estimateMemory(
  config: ModelConfig,
  content: { readonly bytes: number; readonly guessBytes: number },
): DeviceBytes {
  const found = new Map<MemoryDevice, number>(machineBytes(content.guessBytes));
  if (!weightsOnGpu.has(config.backend)) return found;
  for (const { kind, count, gpus } of config.instanceGroups) {
    if (kind !== "KIND_GPU") continue;
    for (const gpu of gpus) found.set(`gpu ${gpu}`, (found.get(`gpu ${gpu}`) ?? 0) + count * content.bytes);
  }
  return found;
}

/**
 * Returns a text for the instances and their devices. The text is part of the key, because the same files need a different amount of memory
 * on other devices.
 */
function devicesText({ instanceGroups }: ModelConfig): string {
  return instanceGroups.map(({ count, gpus }) => [count, ...gpus].join("@")).join(" ");
}
