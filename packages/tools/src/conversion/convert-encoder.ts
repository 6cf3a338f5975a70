import { randomUUID } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { asDiskError } from "@galatea/base";
import {
  onnxByteLength,
  splitModel,
  writeOnnxFile,
  writeOnnxChunks,
  type GraphTensor,
  type OnnxModel,
} from "@galatea/server/onnx-file";
import { planEncoder } from "./architectures/index.ts";
import { openCheckpoint } from "./checkpoint.ts";
import { ConversionError } from "./conversion-error.ts";
import { encoderGraph, type GraphOptions } from "./encoder-graph.ts";
import { tokensMax } from "./encoder-plan.ts";

export interface EncoderConversion extends GraphOptions {
  /** The directory that contains config.json and the weights. */
  readonly source: string;
  /** The path of the ONNX file, in an existing directory. An existing file is replaced. */
  readonly target: string;
  /** Size of a model file in bytes above which its weights are in a separate file, `<target>.data`. */
  readonly fileBytesMax: number;
  /** Cancels the conversion between two writes. */
  readonly signal: AbortSignal;
}

export interface ConvertedEncoder {
  readonly architecture: string;
  readonly inputs: readonly GraphTensor[];
  readonly outputs: readonly GraphTensor[];
  readonly tokensMax: number;
  readonly byteLength: number;
  /** The path of the file with the weights; null if the model file contains them. */
  readonly dataFile: string | null;
  /** Names of the source's tensors that the model does not use. */
  readonly left: readonly string[];
}

/** Maximum size of a protobuf message, minus a margin for programs that read it. */
export const onnxFileBytesMax = 2 ** 31 - 2 ** 20;

/**
 * Writes an encoder as an ONNX file. Weights are streamed from file to file, which bounds the memory. The target is
 * written completely or not at all. Throws ConversionError for an unsupported source, and DiskError for a failed write.
 */
export async function convertEncoder(conversion: EncoderConversion): Promise<ConvertedEncoder> {
  const target = resolve(conversion.target);
  if ((await stat(dirname(target)).catch(() => null))?.isDirectory() !== true)
    throw new ConversionError(`'${dirname(target)}' is not a directory in which to write '${basename(target)}' in`);
  await using checkpoint = await openCheckpoint(conversion.source);
  const plan = planEncoder(checkpoint.config);
  const { model, left } = encoderGraph(plan, checkpoint, conversion);
  const written = await writeModel(target, model, conversion);
  return {
    architecture: plan.architecture,
    inputs: model.inputs,
    outputs: model.outputs,
    tokensMax: tokensMax(plan),
    ...written,
    left,
  };
}

async function writeModel(target: string, complete: OnnxModel, { fileBytesMax, signal }: EncoderConversion) {
  const wholeBytes = onnxByteLength(complete);
  const split = wholeBytes > fileBytesMax ? splitModel(complete, `${basename(target)}.data`) : null;
  const ownBytes = split === null ? wholeBytes : onnxByteLength(split.model);
  const making = join(dirname(target), `.${basename(target)}.${randomUUID()}`);
  const makingData = `${making}.data`;
  try {
    await writeOnnxFile(making, split?.model ?? complete, signal);
    await toDisk(making);
    if (split !== null) {
      await writeOnnxChunks(makingData, split.pieces, signal);
      await toDisk(makingData);
      // Removes the old model first, so that a crash never leaves it with the weights of the new model.
      await rm(target, { force: true });
      await rename(makingData, `${target}.data`);
    }
    await rename(making, target);
  } catch (error) {
    for (const path of [making, makingData]) await rm(path, { force: true });
    throw asDiskError(error, `'${target}'`);
  }
  const dataFile = split === null ? null : `${target}.data`;
  return { dataFile, byteLength: ownBytes + (split?.byteLength ?? 0) };
}

/**
 * Syncs a file before it is renamed. Without this, a power failure could leave an incomplete file under the final name.
 */
async function toDisk(path: string): Promise<void> {
  await using file = await open(path, "r+");
  await file.datasync();
}
