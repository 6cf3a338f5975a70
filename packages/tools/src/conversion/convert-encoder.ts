import { randomUUID } from "node:crypto";
import { open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { asDiskError } from "@galatea/base";
import {
  onnxByteLength,
  splitModel,
  writeOnnxFile,
  writeOnnxPieces,
  type GraphTensor,
  type OnnxModel,
} from "@galatea/server/onnx-file";
import { planEncoder } from "./architectures/index.ts";
import { openCheckpoint } from "./checkpoint.ts";
import { ConversionError } from "./conversion-error.ts";
import { encoderGraph, type GraphOptions } from "./encoder-graph.ts";
import { tokensMax } from "./encoder-plan.ts";

export interface EncoderConversion extends GraphOptions {
  /** A directory with config.json and the weights. */
  readonly source: string;
  /** The ONNX file, in a directory that is there. Replaced where it is there already. */
  readonly target: string;
  /** A model file of more bytes than this has its weights in a file beside it, `<target>.data`. */
  readonly fileBytesMax: number;
  /** Ends the work between two pieces that are written. */
  readonly signal: AbortSignal;
}

export interface ConvertedEncoder {
  readonly architecture: string;
  readonly inputs: readonly GraphTensor[];
  readonly outputs: readonly GraphTensor[];
  readonly tokensMax: number;
  readonly byteLength: number;
  /** The file of the weights where they are not in the model's. */
  readonly dataFile: string | null;
  /** Tensors of the source that are in no constant. */
  readonly left: readonly string[];
}

/** What protobuf can hold, less what readers take for their own. */
export const onnxFileBytesMax = 2 ** 31 - 2 ** 20;

/**
 * Writes an encoder as an ONNX file. Weights stream from file to file: memory is bounded whatever their size. The target is there whole or
 * not at all. Throws ConversionError for what cannot be converted, DiskError for what cannot be written.
 */
export async function convertEncoder(conversion: EncoderConversion): Promise<ConvertedEncoder> {
  const target = resolve(conversion.target);
  if ((await stat(dirname(target)).catch(() => null))?.isDirectory() !== true)
    throw new ConversionError(`'${dirname(target)}' is no directory to write '${basename(target)}' in`);
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

async function writeModel(target: string, whole: OnnxModel, { fileBytesMax, signal }: EncoderConversion) {
  const wholeBytes = onnxByteLength(whole);
  const split = wholeBytes > fileBytesMax ? splitModel(whole, `${basename(target)}.data`) : null;
  const ownBytes = split === null ? wholeBytes : onnxByteLength(split.model);
  const making = join(dirname(target), `.${basename(target)}.${randomUUID()}`);
  const makingData = `${making}.data`;
  try {
    await writeOnnxFile(making, split?.model ?? whole, signal);
    await toDisk(making);
    if (split !== null) {
      await writeOnnxPieces(makingData, split.pieces, signal);
      await toDisk(makingData);
      // A model is never seen beside the weights of another one.
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

/** So that a power failure leaves no name of half a file. */
async function toDisk(path: string): Promise<void> {
  await using file = await open(path, "r+");
  await file.datasync();
}
