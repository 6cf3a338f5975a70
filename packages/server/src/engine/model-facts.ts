import type { InputConfig, ModelConfig, OutputConfig } from "../modelconfig/index.ts";
import { datatypes, type Datatype, type Tensor } from "../tensor/index.ts";

/** The properties of a model that request checks need. Computed once for each loaded version. */
export interface ModelFacts {
  readonly name: string;
  readonly maxBatchSize: number;
  readonly inputs: readonly InputFacts[];
  readonly inputByName: ReadonlyMap<string, InputFacts>;
  readonly requiredInputCount: number;
  readonly outputByName: ReadonlyMap<string, OutputFacts>;
}

export interface InputFacts {
  readonly name: string;
  readonly datatype: Datatype;
  readonly elementBytes: number;
  /** The shape that clients send: with a leading -1 if the model batches. */
  readonly shape: readonly number[];
  /** The shape that the backend receives (`reshape`), batch dimension included; null when the model has no `reshape`. */
  readonly backendShape: readonly number[] | null;
  readonly optional: boolean;
}

export interface OutputFacts {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly number[];
  /** The shape that the backend returns (`reshape`), batch dimension included; null when the model has no `reshape`. */
  readonly backendShape: readonly number[] | null;
}

export function modelFacts(config: ModelConfig): ModelFacts {
  const batched = config.maxBatchSize > 0;
  const inputs = config.inputs.map((input) => ({
    name: input.name,
    datatype: input.datatype,
    elementBytes: datatypes[input.datatype].byteSize,
    optional: input.optional,
    ...shapes(input, batched),
  }));
  const outputs = config.outputs.map((output) => ({
    name: output.name,
    datatype: output.datatype,
    ...shapes(output, batched),
  }));
  return {
    name: config.name,
    maxBatchSize: config.maxBatchSize,
    inputs,
    inputByName: new Map(inputs.map((input) => [input.name, input])),
    requiredInputCount: inputs.filter((input) => !input.optional).length,
    outputByName: new Map(outputs.map((output) => [output.name, output])),
  };
}

/** Returns the inputs in the shapes that the backend expects (`reshape`). */
export function reshapedInputs(inputs: readonly Tensor[], facts: ModelFacts): readonly Tensor[] {
  return inputs.map((tensor): Tensor => {
    const input = facts.inputByName.get(tensor.name);
    if (input === undefined || input.backendShape === null) return tensor;
    const shape = reshaped(tensor.shape, input.shape, input.backendShape);
    return shape === null ? tensor : { ...tensor, shape };
  });
}

function shapes(tensor: InputConfig | OutputConfig, batched: boolean) {
  const withBatch = (dims: readonly number[]) => (batched ? [-1, ...dims] : [...dims]);
  const same =
    tensor.dims.length === tensor.backendDims.length && tensor.dims.every((dim, i) => dim === tensor.backendDims[i]);
  return { shape: withBatch(tensor.dims), backendShape: same ? null : withBatch(tensor.backendDims) };
}

/**
 * Converts the shape of a tensor from `dims` to `reshape` or back. Fixed dimensions are those of `to`. Variable dimensions get the sizes of
 * the variable dimensions of `from`, in order. Returns null if `shape` does not match `from`.
 */
export function reshaped(
  shape: readonly number[],
  from: readonly number[],
  to: readonly number[],
): readonly number[] | null {
  if (shape.length !== from.length) return null;
  const variable: number[] = [];
  for (let i = 0; i < from.length; i++) {
    if (from[i] === -1) variable.push(shape[i] as number);
    else if (from[i] !== shape[i]) return null;
  }
  let next = 0;
  return to.map((dim) => (dim === -1 ? (variable[next++] ?? 1) : dim));
}
