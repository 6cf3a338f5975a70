import { assert, InferenceError } from "@galatea/base";
import type { InferenceResponse, Outcome } from "../../inference/index.ts";
import type { Block, ArenaRange, Tensor } from "../../tensor/index.ts";
import type { ErrorMessage, OutcomeMessage, TensorMessage } from "./messages.ts";

export function placeOf({ arenaId, byteOffset, byteLength }: ArenaRange): ArenaRange {
  return { arenaId, byteOffset, byteLength };
}

/** Bytes of plain memory are copied: what they lie in stays where it is. */
export function tensorMessage({ name, datatype, shape, data, block }: Tensor): TensorMessage {
  const head = { name, datatype, shape };
  if (block === null) return { ...head, data: { bytes: data.slice() } };
  assert(data.buffer === block.bytes.buffer, "a tensor's data lies in its block");
  const byteOffset = data.byteOffset - block.bytes.byteOffset;
  return { ...head, data: { block: placeOf(block), byteOffset, byteLength: data.byteLength } };
}

/** `take` gives the receiver's own reference to the block at a place. */
export function tensorOf({ data, ...head }: TensorMessage, take: (place: ArenaRange) => Block): Tensor {
  if ("bytes" in data) return { ...head, data: data.bytes, block: null };
  const block = take(data.block);
  return { ...head, data: block.bytes.subarray(data.byteOffset, data.byteOffset + data.byteLength), block };
}

export function errorMessage(error: InferenceError): ErrorMessage {
  return { code: error.code, message: error.message, reason: error.reason };
}

export function errorOf({ code, message, reason }: ErrorMessage): InferenceError {
  return new InferenceError(code, message, { reason });
}

export function outcomeMessage(outcome: Outcome): OutcomeMessage {
  if (outcome instanceof InferenceError) return { error: errorMessage(outcome) };
  const { outputs, ...head } = outcome;
  return { head, outputs: outputs.map(tensorMessage) };
}

export function outcomeOf(message: OutcomeMessage, take: (place: ArenaRange) => Block): Outcome {
  if ("error" in message) return errorOf(message.error);
  const outputs = message.outputs.map((output) => tensorOf(output, take));
  return { ...message.head, outputs } satisfies InferenceResponse;
}
