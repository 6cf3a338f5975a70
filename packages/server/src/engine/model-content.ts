import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { onMachine, type DeviceBytes, type MemoryDevice, type ModelSource } from "../backends/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";

/** Private memory of a fresh Python worker, for the first guess; measured costs replace it. */
const pythonInstanceBytes = 3 * 1024 * 1024;
const filesMax = 10_000;

/**
 * What a version is made of, for guessing its memory: names and sizes of its files make the key under which a measured cost is
 * remembered (equal archives of many tenants cost the same), their sum the first guess. Of these files `heldBytes` are in memory already, and
 * charged to another model.
 */
export async function contentOf(
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
    key: [config.backend, placesOf(config), heldBytes > 0 ? "held" : "", ...rows.sort()].join("\n"),
    bytes,
    guessBytes: isPython ? newBytes + instanceCount * pythonInstanceBytes : newBytes * 2,
  };
}

/** Backends whose instances on a GPU have the model's weights there. */
const weightsOnGpu: ReadonlySet<string> = new Set(["tensorrt", "pytorch"]);

/** What loading may take before anybody has measured it: of each GPU at least the files, once for each instance there. */
export function guessOf(
  config: ModelConfig,
  content: { readonly bytes: number; readonly guessBytes: number },
): DeviceBytes {
  const found = new Map<MemoryDevice, number>(onMachine(content.guessBytes));
  if (!weightsOnGpu.has(config.backend)) return found;
  for (const { kind, count, gpus } of config.instanceGroups) {
    if (kind !== "KIND_GPU") continue;
    for (const gpu of gpus) found.set(`gpu ${gpu}`, (found.get(`gpu ${gpu}`) ?? 0) + count * content.bytes);
  }
  return found;
}

/** Instances, and where they are: the same files elsewhere take other memory. */
function placesOf({ instanceGroups }: ModelConfig): string {
  return instanceGroups.map(({ count, gpus }) => [count, ...gpus].join("@")).join(" ");
}
