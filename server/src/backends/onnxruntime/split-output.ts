import { InferenceError } from "../../base/index.ts";
import type { OnnxResult } from "../../native/index.ts";
import { type Arena, type Block, datatypes, elementCount, type Tensor } from "../../tensor/index.ts";
import { datatypeOfElements } from "./element-types.ts";

export interface MadeOutput {
  readonly name: string;
  readonly result: OnnxResult;
  /** Where the elements lie; null for strings and for no bytes at all. */
  readonly block: Block | null;
  readonly arena: Arena;
}

/**
 * Cuts a run's output into the requests' parts, one per row count (null: the model does not batch, the one request gets it
 * whole). A part is a view of the block and owns a reference to it; unwanted ones are null. Throws and leaves no reference
 * behind when the output has another number of rows than went in.
 */
export function splitOutput(
  output: MadeOutput,
  rowCounts: readonly number[] | null,
  wanted: readonly boolean[],
): readonly (Tensor | null)[] {
  const { name, result } = output;
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
  return result.kind === "strings"
    ? splitStrings(output, { elements: result.elements, shapes, wanted })
    : splitBytes(output, { elementType: result.elementType, shapes, wanted });
}

function splitBytes(
  { name, block }: MadeOutput,
  options: { elementType: number; shapes: readonly (readonly number[])[]; wanted: readonly boolean[] },
): readonly (Tensor | null)[] {
  const datatype = datatypeOfElements(options.elementType);
  if (datatype === undefined) {
    throw new InferenceError("UNSUPPORTED", `output '${name}' has ONNX element type ${options.elementType}`);
  }
  let at = 0;
  return options.shapes.map((shape, index) => {
    const byteLength = elementCount(shape) * datatypes[datatype].byteSize;
    const start = at;
    at += byteLength;
    if (options.wanted[index] !== true) return null;
    if (block === null || byteLength === 0) return { name, datatype, shape, data: new Uint8Array(0), block: null };
    block.retain();
    return { name, datatype, shape, data: block.bytes.subarray(start, at), block };
  });
}

function splitStrings(
  { name, arena }: MadeOutput,
  options: { elements: readonly Uint8Array[]; shapes: readonly (readonly number[])[]; wanted: readonly boolean[] },
): readonly (Tensor | null)[] {
  const made: (Tensor | null)[] = [];
  let first = 0;
  try {
    for (const [index, shape] of options.shapes.entries()) {
      const elements = options.elements.slice(first, first + elementCount(shape));
      first += elements.length;
      made.push(options.wanted[index] === true ? stringTensor(name, { shape, elements, arena }) : null);
    }
  } catch (error) {
    for (const tensor of made) tensor?.block?.release();
    throw error;
  }
  return made;
}

function stringTensor(
  name: string,
  options: { shape: readonly number[]; elements: readonly Uint8Array[]; arena: Arena },
): Tensor {
  const { shape, elements } = options;
  const byteLength = elements.reduce((sum, element) => sum + 4 + element.byteLength, 0);
  if (byteLength === 0) return { name, datatype: "BYTES", shape, data: new Uint8Array(0), block: null };
  const block = options.arena.allocate(byteLength);
  const view = new DataView(block.bytes.buffer, block.bytes.byteOffset, byteLength);
  let at = 0;
  for (const element of elements) {
    view.setUint32(at, element.byteLength, true);
    block.bytes.set(element, at + 4);
    at += 4 + element.byteLength;
  }
  return { name, datatype: "BYTES", shape, data: block.bytes, block };
}
