import { InferenceError } from "@galatea/base";
import type { RunResult } from "../../native/index.ts";
import { type Block, datatypes, elementCount, elementEnd, type Tensor } from "../../tensor/index.ts";
import { datatypeOfElements } from "./element-types.ts";

export interface OutputBlock {
  readonly name: string;
  readonly result: RunResult;
  /** Block of the elements; null for zero bytes. */
  readonly block: Block | null;
}

/**
 * Splits an output of a run into one segment per request. If `rowCounts` is null, the model does not batch and its only request gets the
 * whole output. Each segment has its own reference to the output's block; a request that did not select the output gets null. Throws if the
 * output and the inputs have different numbers of rows; no reference is left behind then.
 */
export function splitOutput(
  output: OutputBlock,
  rowCounts: readonly number[] | null,
  desired: readonly boolean[],
): readonly (Tensor | null)[] {
  const { name, result, block } = output;
  const [rowsMade, ...rest] = result.shape;
  if (rowCounts !== null) {
    const rows = rowCounts.reduce((sum, count) => sum + count, 0);
    if (rowsMade !== rows) {
      throw new InferenceError(
        "INTERNAL",
        `output '${name}' has shape [${result.shape.join()}], but its batch dimension must be ${rows} as in the inputs`,
      );
    }
  }
  const shapes = rowCounts === null ? [result.shape] : rowCounts.map((count) => [count, ...rest]);
  const datatype = datatypeOfElements(result.elementType);
  if (datatype === undefined) {
    throw new InferenceError("UNSUPPORTED", `output '${name}' has ONNX element type ${result.elementType}`);
  }
  const chunks: ((Pick<Tensor, "name" | "datatype" | "shape"> & Span) | null)[] = [];
  let at = 0;
  for (const [index, shape] of shapes.entries()) {
    const start = at;
    at = datatype === "BYTES" ? endOfStrings(output, at, elementCount(shape)) : at + elementBytes(datatype, shape);
    chunks.push(desired[index] === true ? { name, datatype, shape, start, end: at } : null);
  }
  const isWhole = chunks.length === 1;
  return chunks.map((chunk) => {
    if (chunk === null) return null;
    const { start, end, ...tensor } = chunk;
    return { ...tensor, ...segmentOf(block, isWhole, { start, end }) };
  });
}

function elementBytes(datatype: Tensor["datatype"], shape: readonly number[]): number {
  return elementCount(shape) * datatypes[datatype].byteSize;
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Returns a reference to the block for a single request, otherwise to a segment of it. */
function segmentOf(block: Block | null, isWhole: boolean, { start, end }: Span): Pick<Tensor, "data" | "block"> {
  if (block === null || start === end) return { data: new Uint8Array(0), block: null };
  if (!isWhole) {
    const part = block.segment(start, end - start);
    return { data: part.bytes, block: part };
  }
  block.retain();
  return { data: block.bytes.subarray(start, end), block };
}

/** Returns the offset after `count` strings of a BYTES tensor. */
function endOfStrings({ block }: OutputBlock, start: number, count: number): number {
  let at = start;
  if (block !== null) for (let index = 0; index < count; index += 1) at = elementEnd(block.bytes, at);
  return at;
}
