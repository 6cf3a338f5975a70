import { InferenceError, type Clock, type EventLoopQueue } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import { deadlineFromNow, newInferenceRequest, type InferenceRequest } from "../../inference/index.ts";
import { datatypes, isDatatype, releaseTensors, type Datatype, type Tensor } from "../../tensor/index.ts";
import { wholeTextBytesMax } from "../infer-codec/index.ts";
import type { InferMessage, MessageInput, MessageOutput, RawContents } from "./infer-message.ts";
import { requestParameters, type ForwardedHeaders, type WireParameter } from "./infer-parameters.ts";
import { acceptsDatatype, fillTyped, findContents, typedByteLength, type TypedContents } from "./typed-contents.ts";

/** A decoded request, and the values that encoding its response needs. */
export interface DecodedRequest {
  readonly request: InferenceRequest;
  /** Number of classes by output, for outputs with the classification extension. */
  readonly classCounts: ReadonlyMap<string, number>;
  readonly wantsEmptyFinalResponse: boolean;
}

export interface DecodeOptions {
  readonly model: ServedModel;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Time, on the engine's monotonic clock, at which the first byte of the message arrived. */
  readonly receivedNs: number;
  /** Metadata of the call that becomes request parameters. */
  readonly forwarded: ForwardedHeaders;
}

/** Returns whether the message has so many typed elements that it is decoded in chunks. */
export function isLongMessage({ inputs }: InferMessage): boolean {
  let bytes = 0;
  for (const { contents } of inputs) for (const { at, end } of contents) bytes += end - at;
  return bytes > wholeTextBytesMax;
}

/**
 * Converts a message to a request, with Triton's checks and texts. Takes ownership of the message's blocks, and releases them when it
 * throws.
 */
export function decodeInferRequest(message: InferMessage, options: DecodeOptions): DecodedRequest {
  const decoding = decodeStepwise(message, options);
  let chunk = decoding.next();
  while (chunk.done !== true) chunk = decoding.next();
  return chunk.value;
}

/** Converts a long message in chunks, and yields to the event loop between them. Rejects with the signal's reason. */
export async function decodeInChunks(
  message: InferMessage,
  options: DecodeOptions,
  loopQueue: EventLoopQueue,
): Promise<DecodedRequest> {
  const decoding = decodeStepwise(message, options);
  let chunk = decoding.next();
  while (chunk.done !== true) {
    try {
      await loopQueue.next(options.signal);
    } catch (error) {
      decoding.throw(error);
    }
    chunk = decoding.next();
  }
  return chunk.value;
}

function* decodeStepwise(message: InferMessage, options: DecodeOptions): Generator<void, DecodedRequest> {
  const tensors: Tensor[] = [];
  try {
    const { wantsEmptyFinalResponse, ...parameters } = requestParameters(message.parameters, options.forwarded);
    const { requestedOutputs, classCounts } = readOutputs(message.outputs);
    yield* placeInputs(message, options, tensors);
    const { id, modelName, modelVersion } = message;
    const request = newInferenceRequest({
      id,
      modelName,
      modelVersion,
      inputs: tensors,
      requestedOutputs,
      ...parameters,
      receivedNs: options.receivedNs,
      deadlineNs: deadlineFromNow(options.clock, parameters.queueTimeoutUs),
      signal: options.signal,
    });
    return { request, classCounts, wantsEmptyFinalResponse };
  } catch (error) {
    releaseTensors(tensors);
    throw error;
  } finally {
    for (const { block } of message.raw) block?.release();
    message.raw = [];
  }
}

/** Creates the tensors and adds them to `tensors`. Each tensor has its own reference to its block. */
function* placeInputs(message: InferMessage, options: DecodeOptions, tensors: Tensor[]): Generator<void, void> {
  const { raw } = message;
  let rawIndex = 0;
  for (const input of message.inputs) {
    refuseRegion(input.name, input.parameters);
    if (input.contents.length > 0 && raw.length > 0)
      throw invalid(`contents field must not be specified when using raw_input_contents for ${where(message, input)}`);
    if (input.contents.length > 0) tensors.push(yield* typedTensor(message, input, options));
    else {
      const contents = raw[rawIndex++];
      if (contents === undefined)
        throw invalid(`unable to find data for input tensor ${where(message, input)} in request.`);
      tensors.push(rawTensor(message, input, contents, options));
    }
  }
}

function where(message: InferMessage, input: MessageInput): string {
  return `'${input.name}' for model '${message.modelName}'`;
}

function rawTensor(
  message: InferMessage,
  input: MessageInput,
  { bytes, block }: RawContents,
  options: DecodeOptions,
): Tensor {
  const datatype = checkedDatatype(message, input, options);
  const shape = checkedShape(input);
  // The reference is added last, when nothing can throw any more. On an error, the caller releases only the tensors in the list.
  block?.retain();
  return { name: input.name, datatype, shape, data: bytes, block };
}

function* typedTensor(message: InferMessage, input: MessageInput, options: DecodeOptions): Generator<void, Tensor> {
  const datatype = checkedDatatype(message, input, options);
  const shape = checkedShape(input);
  const [contents, another] = yield* findContents(input.contents);
  if (contents === undefined) return { name: input.name, datatype, shape, data: new Uint8Array(0), block: null };
  checkContents(message, input, contents, datatype);
  if (another !== undefined)
    throw invalid(
      `unexpected explicit tensor data for input tensor ${where(message, input)}, binary data was already supplied.`,
    );
  const byteLength = typedByteLength(contents, datatype);
  const block = options.model.arena?.allocate(byteLength) ?? null;
  if (block === null) message.memory.grow(byteLength);
  const data = block === null ? new Uint8Array(byteLength) : block.bytes.subarray(0, byteLength);
  try {
    yield* fillTyped(contents, datatype, data);
  } catch (error) {
    block?.release();
    throw error;
  }
  return { name: input.name, datatype, shape, data, block };
}

function checkContents(message: InferMessage, input: MessageInput, contents: TypedContents, datatype: Datatype): void {
  if (acceptsDatatype(contents, datatype)) return;
  throw invalid(
    `unexpected explicit tensor data for input tensor ${where(message, input)} of type '${contents.field.datatype}', expected datatype '${datatype}'`,
  );
}

function checkedDatatype(message: InferMessage, input: MessageInput, { model }: DecodeOptions): Datatype {
  if (isDatatype(input.datatype)) return input.datatype;
  const expected = model.view.config.inputs.find(({ name }) => name === input.name)?.datatype;
  const got = `'${input.datatype}' is none of ${Object.keys(datatypes).join(", ")}`;
  if (expected === undefined) throw invalid(`unexpected inference input ${where(message, input)}; its datatype ${got}`);
  throw invalid(
    `[request id: ${message.id === "" ? "<id_unknown>" : message.id}] inference input '${input.name}' data-type is '<invalid>', but model '${message.modelName}' expects '${expected}'; ${got}`,
  );
}

function checkedShape(input: MessageInput): readonly number[] {
  let count = 1;
  for (const dimension of input.shape) count *= dimension;
  if (Number.isSafeInteger(count) && input.shape.every(Number.isSafeInteger)) return input.shape;
  throw invalid(
    `invalid shape for input '${input.name}': shape [${input.shape.map((each, at) => input.largeDimensions?.get(at) ?? each).join(",")}] causes total element count to exceed maximum size of 9223372036854775807`,
  );
}

function readOutputs(outputs: readonly MessageOutput[]) {
  const classCounts = new Map<string, number>();
  if (outputs.length === 0) return { requestedOutputs: null, classCounts };
  const names = new Set<string>();
  for (const { name, parameters } of outputs) {
    names.add(name);
    refuseRegion(name, parameters);
    const requestedOutput = parameters.get("classification");
    if (requestedOutput === undefined) continue;
    if (requestedOutput.kind !== "int64_param")
      throw invalid("invalid value type for 'classification' parameter, expected int64_param");
    if (requestedOutput.value <= 0n) throw invalid("invalid value for 'classification' parameter, expected >= 0");
    classCounts.set(name, Number(requestedOutput.value));
  }
  return { requestedOutputs: [...names], classCounts };
}

/** Rejects shared memory with Triton's error for an unknown region. Regions cannot be registered yet, so every name is unknown. */
function refuseRegion(tensorName: string, parameters: ReadonlyMap<string, WireParameter>): void {
  if (parameters.size === 0) return;
  const region = parameters.get("shared_memory_region");
  if (region !== undefined && region.kind !== "string_param")
    throw invalid(
      `invalid value type for 'shared_memory_region' parameter for tensor '${tensorName}', expected string_param.`,
    );
  for (const name of ["shared_memory_offset", "shared_memory_byte_size"]) {
    const parameter = parameters.get(name);
    if (parameter === undefined) continue;
    if (region === undefined)
      throw invalid(
        `'${name}' can not be specified without 'shared_memory_region' parameter for tensor '${tensorName}'`,
      );
    if (parameter.kind !== "int64_param")
      throw invalid(`invalid value type for '${name}' parameter for tensor '${tensorName}', expected int64_param.`);
  }
  if (region === undefined) return;
  if (!parameters.has("shared_memory_byte_size"))
    throw invalid(
      `'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter for tensor '${tensorName}'`,
    );
  throw new InferenceError("NOT_FOUND", `Unable to find shared memory region: '${region.value}'`);
}

function invalid(message: string): InferenceError {
  return new InferenceError("INVALID_ARG", message);
}
