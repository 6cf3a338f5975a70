import type { OnnxValueInfo } from "../../native/index.ts";
import type { ModelInput } from "./model-run.ts";

/**
 * Returns the shape of an output if it is known before a run: each dimension is fixed, or has the same name as an input's dimension.
 * Returns null if a dimension is unknown; the library then allocates the output.
 */
export function predictOutputShape(
  output: OnnxValueInfo,
  inputs: readonly ModelInput[],
  declared: readonly OnnxValueInfo[],
): readonly number[] | null {
  const shape: number[] = [];
  for (const [axis, dim] of output.dims.entries()) {
    const symbol = output.symbols[axis] as string;
    const size = dim >= 0 ? dim : symbol === "" ? null : sizeOf(symbol, inputs, declared);
    if (size === null) return null;
    shape.push(size);
  }
  return shape;
}

function sizeOf(symbol: string, inputs: readonly ModelInput[], declared: readonly OnnxValueInfo[]): number | null {
  for (const input of inputs) {
    const axis = declared[input.index]?.symbols.indexOf(symbol) ?? -1;
    if (axis >= 0) return input.shape[axis] ?? null;
  }
  return null;
}
