import { InferenceError } from "@galatea/base";
import type { InferenceRequest, ParameterValue } from "../../inference/index.ts";
import { printParameters } from "./execution-codec.ts";
import {
  correlationTextBytesMax,
  frameBytesMax,
  inputsMax,
  lentBytes,
  rankMax,
  requestBytes,
  requestedMax,
  requestsMax,
  tensorBytes,
} from "./wire.ts";

/** Bytes of a frame that are reserved for the frame's head and for the records of output blocks. */
const reservedBytes = 128 * 1024;
/** Maximum number of output blocks in one EXECUTE frame. */
export const spacesMax = 4096;
/** Maximum size in bytes of the requests in one EXECUTE frame, including their small tensors. */
export const requestsBytesMax = frameBytesMax - reservedBytes;

/** The division of a batch into frames. Numbers are indexes of requests in the batch. */
export interface FramePlan {
  /** The requests of each frame. */
  readonly parts: readonly (readonly number[])[];
  /** Requests that are too large for any frame, each with its error. */
  readonly refused: ReadonlyMap<number, InferenceError>;
}

/** Limits of one frame in bytes: maximum size of an inline tensor, and of all requests together (`requestsBytesMax`). */
export interface FrameCapacity {
  readonly inlineBytesMax: number;
  readonly requestsBytesMax: number;
}

/**
 * Divides a batch into frames before any blocks are lent. Returns null if one frame suffices, which is nearly always the case and is
 * determined without encoding texts.
 */
export function planFrames(batch: readonly InferenceRequest[], capacity: FrameCapacity): FramePlan | null {
  let bound = 0;
  for (const request of batch) bound += boundOf(request, capacity.inlineBytesMax);
  if (bound <= capacity.requestsBytesMax && batch.length <= requestsMax) return null;
  const parts: number[][] = [];
  const refused = new Map<number, InferenceError>();
  let part: number[] = [];
  let partBytes = 0;
  for (let position = 0; position < batch.length; position++) {
    const bytes = bytesOf(batch[position]!, capacity);
    if (bytes instanceof InferenceError) {
      refused.set(position, bytes);
      continue;
    }
    if (part.length === requestsMax || partBytes + bytes > capacity.requestsBytesMax) {
      parts.push(part);
      part = [];
      partBytes = 0;
    }
    part.push(position);
    partBytes += bytes;
  }
  if (part.length > 0) parts.push(part);
  return { parts, refused };
}

/** Returns an upper bound of the request's size in a frame; Infinity if a count of the request does not fit its field. */
function boundOf(request: InferenceRequest, inlineBytesMax: number): number {
  const { id, sequence, requestedOutputs, parameters, inputs } = request;
  // A UTF-16 code unit needs at most three bytes in UTF-8.
  let bytes = requestBytes + 8 + 3 * id.length;
  if (sequence !== null && typeof sequence.id === "string") {
    const textBytes = 3 * sequence.id.length;
    bytes += textBytes > correlationTextBytesMax ? Number.POSITIVE_INFINITY : textBytes;
  }
  if (requestedOutputs !== null)
    bytes += requestedOutputs.length > requestedMax ? Number.POSITIVE_INFINITY : 2 * requestedOutputs.length;
  if (parameters.size > 0) bytes += parametersBound(parameters);
  if (inputs.length > inputsMax) return Number.POSITIVE_INFINITY;
  return bytes + inputsBytes(request, inlineBytesMax);
}

/** Returns an upper bound of the inputs' size; Infinity when a tensor has too many dimensions for the format. */
function inputsBytes({ inputs }: InferenceRequest, inlineBytesMax: number): number {
  let bytes = 0;
  for (const { shape, data } of inputs) {
    if (shape.length > rankMax) return Number.POSITIVE_INFINITY;
    bytes += tensorBytes + 8 * shape.length + lentBytes;
    if (data.byteLength <= inlineBytesMax) bytes += data.byteLength + 16;
  }
  return bytes;
}

/**
 * Returns an upper bound of the size of the parameters as JSON. A character needs at most six bytes (`\u0000`), a number or a boolean fewer
 * than forty.
 */
function parametersBound(parameters: ReadonlyMap<string, ParameterValue>): number {
  let bytes = 2;
  for (const [key, value] of parameters)
    bytes += 6 * key.length + 4 + (typeof value === "string" ? 6 * value.length + 2 : 40);
  return bytes;
}

/** Returns the request's size in a frame, or an error if the request is too large for any frame. */
function bytesOf(
  request: InferenceRequest,
  { inlineBytesMax, requestsBytesMax: bytesMax }: FrameCapacity,
): number | InferenceError {
  const { id, sequence, requestedOutputs, parameters, inputs } = request;
  const correlation = sequence !== null && typeof sequence.id === "string" ? Buffer.byteLength(sequence.id) : 0;
  if (correlation > correlationTextBytesMax)
    return tooLarge(`sequence id has ${correlation} bytes`, correlationTextBytesMax);
  if (requestedOutputs !== null && requestedOutputs.length > requestedMax)
    return tooLarge(`list of requested outputs has ${requestedOutputs.length} names`, requestedMax);
  if (inputs.length > inputsMax) return tooLarge(`list of inputs has ${inputs.length} tensors`, inputsMax);
  for (const { name, shape } of inputs)
    if (shape.length > rankMax) return tooLarge(`input '${name}' has ${shape.length} dimensions`, rankMax);
  const idBytes = Buffer.byteLength(id);
  if (idBytes > bytesMax) return tooLarge(`id has ${idBytes} bytes`, bytesMax);
  const parametersBytes = parametersBytesOf(parameters, bytesMax);
  if (parametersBytes > bytesMax) return tooLarge(`parameters have ${parametersBytes} bytes or more as JSON`, bytesMax);
  const fixedBytes = requestBytes + 8 + 2 * (requestedOutputs?.length ?? 0);
  const bytes = fixedBytes + correlation + idBytes + parametersBytes + inputsBytes(request, inlineBytesMax);
  if (bytes > bytesMax) return tooLarge(`id, parameters and small tensors have ${bytes} bytes together`, bytesMax);
  return bytes;
}

/** Returns the size of the parameters as JSON. Parameters that are too long even without escapes are not converted. */
function parametersBytesOf(parameters: ReadonlyMap<string, ParameterValue>, bytesMax: number): number {
  if (parameters.size === 0) return 0;
  let units = 0;
  for (const [key, value] of parameters) units += key.length + (typeof value === "string" ? value.length : 1);
  return units > bytesMax ? units : Buffer.byteLength(printParameters(parameters));
}

function tooLarge(what: string, most: number): InferenceError {
  return new InferenceError("INVALID_ARG", `the request's ${what}; the Python backend accepts at most ${most}`);
}
