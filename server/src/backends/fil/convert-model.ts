import { type FileHandle, mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { InferenceError } from "../../base/index.ts";
import { type OnnxModel, writeOnnxFile } from "../onnx-file/index.ts";
import type { FilParameters } from "./fil-parameters.ts";
import { type AskedTensors, planAnswer } from "./plan-answer.ts";
import { readForest } from "./read-forest.ts";
import { treeGraph } from "./tree-graph.ts";

/** What is made of a model file, by a thread of its own. */
export interface ConversionOrder {
  readonly modelPath: string;
  /** Made with its directory; it is there when the whole of it is. */
  readonly onnxPath: string;
  readonly parameters: FilParameters;
  readonly asked: AskedTensors;
}

/** Ten million nodes as XGBoost's JSON; more than that has more nodes than are run. */
const fileBytesMax = 500 * 2 ** 20;

/** Throws InferenceError for a file that is no model, or another than the configuration announces. */
export async function convertModel({ onnxPath, ...order }: ConversionOrder): Promise<void> {
  const model = await readTreeModel(order);
  await mkdir(dirname(onnxPath), { recursive: true });
  await writeOnnxFile(`${onnxPath}.writing`, model);
  await rename(`${onnxPath}.writing`, onnxPath);
}

/** What is written, before it is. */
export async function readTreeModel({
  modelPath,
  parameters,
  asked,
}: Omit<ConversionOrder, "onnxPath">): Promise<OnnxModel> {
  const bytes = await readBytes(modelPath);
  try {
    const forest = readForest(bytes, parameters.modelType, { allowUnknownField: parameters.allowUnknownField });
    return treeGraph(forest, planAnswer(forest, parameters, asked));
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
