import { type FileHandle, open } from "node:fs/promises";
import { InferenceError } from "@galatea/base";
import { compactForest } from "./evaluation/compact-forest.ts";
import type { TreeModel } from "./evaluation/evaluator.ts";
import type { FilParameters } from "./fil-parameters.ts";
import { type ConfiguredTensors, chooseOutputForm } from "./configured-tensors.ts";
import { readForest } from "./read-forest.ts";

/** A model file and how to read it. */
export interface ReadTreeModelOptions {
  readonly modelPath: string;
  readonly parameters: FilParameters;
  readonly tensors: ConfiguredTensors;
  /** Number of threads that will evaluate the model. */
  readonly workspaceCount: number;
}

/** Maximum size of a file: about ten million nodes in XGBoost's JSON. Larger models have too many nodes. */
const fileBytesMax = 500 * 2 ** 20;

/** Reads a model. Rejects with InferenceError for an invalid file, or one that does not match the configuration. */
export async function readTreeModel({
  modelPath,
  parameters,
  tensors,
  workspaceCount,
}: ReadTreeModelOptions): Promise<TreeModel> {
  const bytes = await readBytes(modelPath);
  try {
    const explains = tensors.contributionDims !== null;
    const { allowUnknownField } = parameters;
    const forest = readForest(bytes, parameters.modelType, { allowUnknownField, explains });
    const outputForm = chooseOutputForm(forest, parameters, tensors);
    return { forest: compactForest(forest, { workspaceCount, explains }), outputForm };
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    throw new InferenceError(error.code, `unable to read '${modelPath}' as ${parameters.modelType}: ${error.message}`);
  }
}

async function readBytes(path: string): Promise<Uint8Array> {
  await using file = await openFile(path);
  const { size } = await file.stat();
  if (size > fileBytesMax) throw new InferenceError("UNSUPPORTED", `'${path}' is larger than ${fileBytesMax} bytes`);
  const bytes = new Uint8Array(size);
  let count = 0;
  while (count < size) {
    const { bytesRead } = await file.read(bytes, count, size - count, count);
    if (bytesRead === 0) break;
    count += bytesRead;
  }
  return bytes.subarray(0, count);
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new InferenceError("UNAVAILABLE", `unable to find '${path}'`);
  }
}
