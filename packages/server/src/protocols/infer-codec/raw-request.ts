import { InferenceError } from "@galatea/base";
import type { ModelConfig } from "../../modelconfig/index.ts";
import { datatypes, elementCount, type Block, type BlockSource, type Tensor } from "../../tensor/index.ts";

/** The only input of a raw request: the memory for the body, and the tensor that contains it. */
export interface RawInput {
  readonly into: Uint8Array;
  readonly tensor: Tensor;
}

/**
 * Allocates the model's only input for a body without JSON (header length 0). The shape is derived from the configuration and the length of
 * the body. For a BYTES tensor, also writes the length field before the body. The caller owns the tensor.
 */
export function placeRawInput(config: ModelConfig, bodyBytes: number, arena: BlockSource | null): RawInput {
  const [only] = config.inputs;
  if (config.inputs.length !== 1 || only === undefined) {
    throw refused(
      `Raw request must only have 1 input (found 1) to be deduced but got ${config.inputs.length} inputs in '${config.name}' model configuration`,
    );
  }
  const { name, datatype, dims: configured } = only;
  const batches = config.maxBatchSize > 0;
  const isBytes = datatype === "BYTES";
  if (isBytes && !(configured.length === 1 && configured[0] === 1)) {
    throw refused(`For BYTE datatype raw input '${name}', the model must have input shape [1]`);
  }
  const deduced = isBytes ? [1] : deduceShape(name, configured, Math.floor(bodyBytes / datatypes[datatype].byteSize));
  const shape = batches ? [1, ...deduced] : deduced;
  const expectedBytes = isBytes ? bodyBytes : elementCount(shape) * datatypes[datatype].byteSize;
  if (bodyBytes !== expectedBytes) {
    // Triton uses the name `raw_input` in this error, and the input's real name in later errors.
    throw refused(
      `input byte size mismatch for input 'raw_input' for model '${config.name}'. Expected ${expectedBytes}, got ${bodyBytes}`,
    );
  }
  const byteLength = isBytes ? bodyBytes + 4 : bodyBytes;
  const block: Block | null = arena !== null && byteLength > 0 ? arena.allocate(byteLength) : null;
  const data = block === null ? new Uint8Array(byteLength) : block.bytes;
  if (isBytes) new DataView(data.buffer, data.byteOffset).setUint32(0, bodyBytes, true);
  return { into: isBytes ? data.subarray(4) : data, tensor: { name, datatype, shape, data, block } };
}

function deduceShape(name: string, configured: readonly number[], elements: number): number[] {
  const variable = configured.filter((dimension) => dimension < 0).length;
  if (variable > 1) {
    throw refused(
      `The shape of the raw input '${name}' can not be deduced because there are more than one variable-sized dimension`,
    );
  }
  let fixed = 1;
  for (const dimension of configured) if (dimension >= 0) fixed *= dimension;
  return configured.map((dimension) => (dimension < 0 ? Math.floor(elements / Math.max(fixed, 1)) : dimension));
}

/** Returns an error with the prefix "<id_unknown>", because a raw request has no id. */
function refused(message: string): InferenceError {
  return new InferenceError("INVALID_ARG", `[request id: <id_unknown>] ${message}`);
}
