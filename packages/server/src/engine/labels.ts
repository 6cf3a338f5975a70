import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "../modelconfig/index.ts";

const labelFileBytesMax = 16 * 1024 * 1024;

/** Returns the lines of each output's label file, by output name. Called once, when a version loads. */
export async function readLabels(
  modelDirectory: string,
  config: ModelConfig,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const labels = new Map<string, readonly string[]>();
  for (const output of config.outputs) {
    if (output.labelFilename === "") continue;
    const path = join(modelDirectory, output.labelFilename);
    const text = await readLabelFile(path).catch((cause: unknown) => {
      if (cause instanceof InferenceError) throw cause;
      throw notOpened(path, output.name, cause as Error);
    });
    labels.set(output.name, text.replace(/\n$/, "").split(/\r?\n/));
  }
  return labels;
}

async function readLabelFile(path: string): Promise<string> {
  const file = await stat(path);
  if (!file.isFile()) throw new Error("it is not a file");
  if (file.size > labelFileBytesMax)
    throw new InferenceError("INVALID_ARG", `label file ${path} is larger than ${labelFileBytesMax} bytes`);
  return await readFile(path, "utf8");
}

function notOpened(path: string, output: string, cause: Error): InferenceError {
  const text = `failed to open label file ${path} of output '${output}': ${cause.message}`;
  return new InferenceError("INTERNAL", text, { cause });
}
