import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { ModelSource } from "../backends/index.ts";
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
): Promise<{ readonly key: string; readonly guessBytes: number }> {
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
    key: [config.backend, instanceCount, heldBytes > 0 ? "held" : "", ...rows.sort()].join("\n"),
    guessBytes: isPython ? newBytes + instanceCount * pythonInstanceBytes : newBytes * 2,
  };
}
