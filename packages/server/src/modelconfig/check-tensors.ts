import { DataType, InputFormat, type InputMessage, type ModelConfigMessage, type OutputMessage } from "./message.ts";
import { throwInvalidConfig } from "./invalid-config.ts";

/** Checks the inputs and outputs of one model for missing fields and contradictions. */
export function checkTensors(message: ModelConfigMessage): void {
  checkDistinct(message.input, "model input", message.name);
  for (const input of message.input) {
    checkTensor(input, "model input", message);
    if (input.format !== InputFormat.NONE && input.dims.length !== 3)
      throwInvalidConfig(`model input NHWC/NCHW require 3 dims for ${message.name}`);
    if (input.isShapeTensor) checkShapeTensor(message);
  }
  checkDistinct(message.output, "model output", message.name);
  for (const output of message.output) {
    checkTensor(output, "model output", message);
    if (output.isShapeTensor) checkShapeTensor(message);
  }
}

/** Rejects two tensors with the same name. Triton accepts them and serves the last one. */
function checkDistinct(tensors: readonly { name: string }[], what: string, model: string): void {
  const seen = new Set<string>();
  for (const { name } of tensors) {
    if (name !== "" && seen.has(name)) throwInvalidConfig(`${what} '${name}' is specified more than once for ${model}`);
    seen.add(name);
  }
}

function checkShapeTensor(message: ModelConfigMessage): void {
  if (message.platform !== "tensorrt_plan")
    throwInvalidConfig(`shape tensors are only supported for TensorRT platform for ${message.name}`);
}

function checkTensor(tensor: InputMessage | OutputMessage, what: string, message: ModelConfigMessage): void {
  const model = message.name;
  if (tensor.name === "") throwInvalidConfig(`${what} must specify 'name' for ${model}`);
  const named = `${what} '${tensor.name}'`;
  if (tensor.dataType === DataType.TYPE_INVALID || DataType[tensor.dataType] === undefined) {
    throwInvalidConfig(`${named} must specify 'data_type' for ${model}`);
  }
  if (tensor.dims.length === 0) throwInvalidConfig(`${named} must specify 'dims' for ${model}`);
  const rule = "must be integer >= 1, or -1 to indicate a variable-size dimension";
  const large = tensor.dims.find((dim) => dim > dimensionMax);
  if (large !== undefined)
    throwInvalidConfig(`${named} dimension ${large} is over this server's limit of ${dimensionMax} for ${model}`);
  if (tensor.dims.some(isNoDimension)) throwInvalidConfig(`${named} dimension ${rule} for ${model}`);
  const reshape = tensor.reshape?.shape;
  if (reshape === undefined) return;
  if (reshape.length === 0 && message.maxBatchSize === 0) {
    throwInvalidConfig(
      `${named} cannot have empty reshape for non-batching model as scalar tensors are not supported for ${model}`,
    );
  }
  if (reshape.some(isNoDimension)) throwInvalidConfig(`${named} reshape dimensions ${rule} for ${model}`);
  const [fixed, reshaped] = [runs(tensor.dims), runs(reshape)];
  if (fixed.length > 1 !== reshaped.length > 1)
    throwInvalidConfig(`${named} has different size for dims and reshape for ${model}`);
  if (fixed.length !== reshaped.length) {
    throwInvalidConfig(`${named} has different number of variable-size dimensions for dims and reshape for ${model}`);
  }
  if (fixed.some((size, i) => size !== reshaped[i]))
    throwInvalidConfig(`${named} has different size for dims and reshape for ${model}`);
}

const dimensionMax = BigInt(Number.MAX_SAFE_INTEGER);
const isNoDimension = (dim: bigint) => dim < -1n || dim === 0n || dim > dimensionMax;

/** Returns the products of the fixed dimensions before, between and after the variable dimensions. */
function runs(dims: readonly bigint[]): readonly bigint[] {
  const products = [1n];
  for (const dim of dims) {
    if (dim === -1n) products.push(1n);
    else products[products.length - 1]! *= dim;
  }
  return products;
}
