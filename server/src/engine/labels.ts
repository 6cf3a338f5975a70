import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError } from "../base/index.ts";
import type { ModelConfig } from "../modelconfig/index.ts";

const labelFileBytesMax = 16 * 1024 * 1024;

/** Output name to the lines of its label file; read once, when a version loads. */
export async function readLabels(
  modelDirectory: string,
  config: ModelConfig,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const labels = new Map<string, readonly string[]>();
  for (const output of config.outputs) {
    if (output.labelFilename === "") continue;
    const path = join(modelDirectory, output.labelFilename);
    const text = await readFile(path, "utf8").catch((cause: unknown) => {
      throw new InferenceError(
        "INTERNAL",
        `failed to open label file ${path} of output '${output.name}': ${(cause as Error).message}`,
        { cause },
      );
    });
    if (text.length > labelFileBytesMax)
      throw new InferenceError("INVALID_ARG", `label file ${path} is larger than ${labelFileBytesMax} bytes`);
    labels.set(output.name, text.replace(/\n$/, "").split(/\r?\n/));
  }
  return labels;
}
