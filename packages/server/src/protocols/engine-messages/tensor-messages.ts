import { assert, InferenceError } from "@galatea/base";
import type { InferenceResponse, Outcome } from "../../inference/index.ts";
import type { Block, ArenaRange, Tensor } from "../../tensor/index.ts";
import type { ErrorMessage, OutcomeMessage, TensorMessage } from "./messages.ts";

export function toArenaRange({ arenaId, byteOffset, byteLength }: ArenaRange): ArenaRange {
  return { arenaId, byteOffset, byteLength };
}

/** Converts a tensor to a message. Copies bytes that are not in a block. */
export function tensorMessage({ name, datatype, shape, data, block }: Tensor): TensorMessage {
  const head = { name, datatype, shape };
  if (block === null) return { ...head, data: { bytes: data.slice() } };
  assert(data.buffer === block.bytes.buffer, "a tensor's data lies in its block");
  const byteOffset = data.byteOffset - block.bytes.byteOffset;
  return { ...head, data: { block: toArenaRange(block), byteOffset, byteLength: data.byteLength } };
}

/** Converts a message to a tensor. `take` returns a reference, owned by the receiver, to the block that contains a range. */
export function fromTensorMessage({ data, ...head }: TensorMessage, take: (location: ArenaRange) => Block): Tensor {
  if ("bytes" in data) return { ...head, data: data.bytes, block: null };
  const block = take(data.block);
  return { ...head, data: block.bytes.subarray(data.byteOffset, data.byteOffset + data.byteLength), block };
}

export function errorMessage(error: InferenceError): ErrorMessage {
  return { code: error.code, message: error.message, reason: error.reason };
}

export function fromErrorMessage({ code, message, reason }: ErrorMessage): InferenceError {
  return new InferenceError(code, message, { reason });
}

export function outcomeMessage(outcome: Outcome): OutcomeMessage {
  if (outcome instanceof InferenceError) return { error: errorMessage(outcome) };
  const { outputs, ...head } = outcome;
  return { head, outputs: outputs.map(tensorMessage) };
}

export function fromOutcomeMessage(message: OutcomeMessage, take: (location: ArenaRange) => Block): Outcome {
  if ("error" in message) return fromErrorMessage(message.error);
  const outputs = message.outputs.map((output) => fromTensorMessage(output, take));
  return { ...message.head, outputs } satisfies InferenceResponse;
}
