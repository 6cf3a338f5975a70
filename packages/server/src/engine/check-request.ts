import { InferenceError } from "@galatea/base";
import type { InferenceRequest } from "../inference/index.ts";
import { elementCount, type Tensor } from "../tensor/index.ts";
import type { InputFacts, ModelFacts } from "./model-facts.ts";

const batchNote =
  "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to each input shape. " +
  "If you want to specify the full shape including the batch dim in your input dims config, try setting max_batch_size to zero. " +
  "See the model configuration docs for more info on max_batch_size.";

/**
 * Checks a request against its model, in Triton's order and with Triton's texts (infer_request.cc of Triton's core, 2.51). Returns the
 * batch size of the request (1 for models that do not batch). Runs once per request and per ensemble step; allocates nothing for a valid
 * request.
 */
export function checkRequest(request: InferenceRequest, facts: ModelFacts): number {
  if (request.requestedOutputs !== null) {
    for (const name of request.requestedOutputs) {
      if (!facts.outputByName.has(name))
        throw refused(`unexpected inference output '${name}' for model '${facts.name}'`);
    }
  }
  checkInputNames(request, facts);
  let batchSize = facts.maxBatchSize > 0 ? -1 : 1;
  for (const tensor of request.inputs) {
    if (facts.maxBatchSize === 0) break;
    if (tensor.shape.length === 0)
      throw refuse(
        request,
        `input '${tensor.name}' has no shape but model requires batch dimension for '${facts.name}'`,
      );
    const own = tensor.shape[0] as number;
    if (batchSize === -1) batchSize = own;
    else if (batchSize !== own)
      throw refuse(request, `input '${tensor.name}' batch size does not match other inputs for '${facts.name}'`);
  }
  if (batchSize === -1) batchSize = 1;
  if (facts.maxBatchSize > 0 && batchSize > facts.maxBatchSize)
    throw refuse(request, `inference request batch-size must be <= ${facts.maxBatchSize} for '${facts.name}'`);
  for (const tensor of request.inputs) checkInput(request, tensor, facts);
  return batchSize;
}

function checkInputNames(request: InferenceRequest, facts: ModelFacts): void {
  const count = request.inputs.length;
  let required = 0;
  let unknown: Tensor | null = null;
  for (let i = 0; i < count; i++) {
    const tensor = request.inputs[i] as Tensor;
    const known = facts.inputByName.get(tensor.name);
    if (known === undefined) unknown ??= tensor;
    else if (!known.optional) required++;
  }
  const repeated = repeatedName(request.inputs);
  if (repeated !== null) throw refuse(request, `input '${repeated}' already exists in request`);
  if (unknown === null && required === facts.requiredInputCount) return;
  if (count < facts.requiredInputCount || count > facts.inputs.length)
    throw refuse(request, wrongCount(request, facts));
  if (unknown !== null) throw refused(`unexpected inference input '${unknown.name}' for model '${facts.name}'`);
  throw refuse(request, wrongCount(request, facts));
}

/** Up to this number of tensors, each name is compared with every other, which allocates nothing; above it a Set is used. */
const comparedMax = 16;

function repeatedName(tensors: readonly Tensor[]): string | null {
  if (tensors.length > comparedMax) {
    const seen = new Set<string>();
    for (const { name } of tensors) {
      if (seen.has(name)) return name;
      seen.add(name);
    }
    return null;
  }
  for (let i = 1; i < tensors.length; i++) {
    const { name } = tensors[i] as Tensor;
    for (let j = 0; j < i; j++) if (tensors[j]?.name === name) return name;
  }
  return null;
}

function wrongCount(request: InferenceRequest, facts: ModelFacts): string {
  const got = new Set(request.inputs.map((tensor) => tensor.name));
  const missing = facts.inputs.filter((input) => !input.optional && !got.has(input.name)).map((input) => input.name);
  const list = (names: Iterable<string>) => `[${[...names].map((name) => `'${name}'`).join(",")}]`;
  const optional = facts.requiredInputCount !== facts.inputs.length;
  const expected = optional
    ? `expected number of inputs between ${facts.requiredInputCount} and ${facts.inputs.length} but got ${got.size}`
    : `expected ${facts.inputs.length} inputs but got ${got.size}`;
  return (
    `${expected} inputs for model '${facts.name}'. Got input(s) ${list(got)}, but missing required input(s) ${list(missing)}. ` +
    "Please provide all required input(s)."
  );
}

function checkInput(request: InferenceRequest, tensor: Tensor, facts: ModelFacts): void {
  const expected = facts.inputByName.get(tensor.name) as InputFacts;
  if (tensor.datatype !== expected.datatype)
    throw refuse(
      request,
      `inference input '${tensor.name}' data-type is '${tensor.datatype}', but model '${facts.name}' expects '${expected.datatype}'`,
    );
  if (!shapeAgrees(tensor.shape, expected.shape)) {
    throw refuse(
      request,
      `unexpected shape for input '${tensor.name}' for model '${facts.name}'. Expected [${expected.shape.join(",")}], ` +
        `got [${tensor.shape.join(",")}]. ${facts.maxBatchSize > 0 ? batchNote : ""}`,
    );
  }
  // Triton rejects a batch with 0 rows: its error reports the missing bytes of one row.
  const isEmpty = facts.maxBatchSize > 0 && tensor.shape[0] === 0;
  const count = elementCount(isEmpty ? tensor.shape.slice(1) : tensor.shape);
  if (expected.elementBytes > 0) {
    const bytes = count * expected.elementBytes;
    if (tensor.data.byteLength !== bytes)
      throw refuse(
        request,
        `input byte size mismatch for input '${tensor.name}' for model '${facts.name}'. Expected ${bytes}, got ${tensor.data.byteLength}`,
      );
  } else checkStrings(request, tensor, count, facts.name);
}

function shapeAgrees(shape: readonly number[], expected: readonly number[]): boolean {
  if (shape.length !== expected.length) return false;
  for (let i = 0; i < shape.length; i++) {
    const desired = expected[i] as number;
    const dimension = shape[i] as number;
    if (dimension < 0 || (desired !== -1 && desired !== dimension)) return false;
  }
  return true;
}

/** Checks the uint32 length before each string; the number of strings must equal the element count. */
function checkStrings(request: InferenceRequest, tensor: Tensor, expectedCount: number, model: string): void {
  const { data } = tensor;
  const where = `for inference input '${tensor.name}' for model '${model}'`;
  let offset = 0;
  let count = 0;
  while (offset < data.byteLength) {
    if (count === expectedCount)
      throw refuse(request, `unexpected number of string elements ${count + 1} ${where}, expecting ${expectedCount}`);
    if (data.byteLength - offset < 4)
      throw refuse(
        request,
        `incomplete string length indicator ${where}, expecting 4 bytes but only ${data.byteLength - offset} bytes available. Please make sure the string length indicator is in one buffer.`,
      );
    const length =
      ((data[offset] as number) |
        ((data[offset + 1] as number) << 8) |
        ((data[offset + 2] as number) << 16) |
        ((data[offset + 3] as number) << 24)) >>>
      0;
    offset += 4;
    if (length > data.byteLength - offset)
      throw invalid(
        `incomplete string data for inference input '${tensor.name}', expecting string of length ${length} but only ${data.byteLength - offset} bytes available`,
      );
    offset += length;
    count++;
  }
  if (count !== expectedCount)
    throw refuse(request, `expected ${expectedCount} string elements ${where}, got ${count}`);
}

/** Returns the error for invalid tensor contents; Triton reports it with the same code as an error of the model. */
function invalid(message: string): InferenceError {
  return new InferenceError("INVALID_ARG", message);
}

function refused(message: string): InferenceError {
  return new InferenceError("INVALID_ARG", message, { reason: "request-refused" });
}

/** Returns an error whose message begins with the request id, as in Triton's core. */
function refuse(request: InferenceRequest, message: string): InferenceError {
  return refused(`[request id: ${request.id === "" ? "<id_unknown>" : request.id}] ${message}`);
}
