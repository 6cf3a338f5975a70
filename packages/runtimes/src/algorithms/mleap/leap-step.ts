import type { BundleAttributes } from "./bundle-attributes.ts";
import { invalidBundle, type BundleFolder, type StepShape } from "./bundle-files.ts";
import {
  asDouble,
  asVector,
  doubleValue,
  LeapFailure,
  type LeapRow,
  type LeapValue,
  vectorValue,
} from "./leap-values.ts";

/** A step of a pipeline: reads columns of a row and adds others. Throws LeapFailure for a row that it does not support. */
export type LeapStep = (row: LeapRow) => void;

/** The definition of a step. */
export interface StepSource {
  readonly attributes: BundleAttributes;
  readonly shape: StepShape;
  readonly folder: BundleFolder;
}

/** Creates a step. Throws InferenceError for an invalid model. */
export type StepFactory = (source: StepSource) => LeapStep;

/** Returns the column of an input port. Throws InferenceError if the port is missing. */
export function inputOf({ shape, folder }: StepSource, port: string): string {
  const column = shape.inputs.get(port);
  if (column === undefined) throw invalidBundle(`has no input '${port}' in '${folder.name}'`);
  return column;
}

export function outputOf({ shape, folder }: StepSource, port: string): string {
  const column = shape.outputs.get(port);
  if (column === undefined) throw invalidBundle(`has no output '${port}' in '${folder.name}'`);
  return column;
}

/** Creates a step that computes the column of the port `output` from the column of the port `input`. */
export function columnStep(source: StepSource, apply: (value: LeapValue, row: LeapRow) => LeapValue): LeapStep {
  const input = inputOf(source, "input");
  const output = outputOf(source, "output");
  return (row) => row.set(output, apply(row.get(input), row));
}

export function doubleStep(source: StepSource, apply: (value: number) => number): LeapStep {
  return columnStep(source, (value) => doubleValue(apply(asDouble(value))));
}

/** Creates a step that maps a vector of `size` elements to a vector; a `size` of 0 allows any length. */
export function vectorStep(source: StepSource, size: number, apply: (values: Float64Array) => Float64Array): LeapStep {
  return columnStep(source, (value) => vectorValue(apply(sized(asVector(value), size))));
}

export function sized(values: Float64Array, size: number): Float64Array {
  if (size !== 0 && values.length !== size) {
    throw new LeapFailure(`a vector has ${values.length} elements where the model has ${size}`);
  }
  return values;
}

export function dot(left: Float64Array, right: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < left.length; at += 1) sum += (left[at] as number) * (right[at] as number);
  return sum;
}

/** Returns the index of the largest element, the first of equal ones. */
export function argmax(values: ArrayLike<number>): number {
  let best = 0;
  for (let at = 1; at < values.length; at += 1) if ((values[at] as number) > (values[best] as number)) best = at;
  return best;
}
