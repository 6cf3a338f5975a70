/** Encodes, for tests, frames with any content, valid or not, and sends them as a worker. */
import assert from "node:assert/strict";
import { InferenceError } from "@galatea/base";
import { ExecutionNotStarted, releaseResponse, type Execution, DeferredResponses } from "../../inference/index.ts";
import type { HostileInstance } from "./hostile-worker.ts";
import { inArena, request, tensor } from "./python-fixture.ts";
import { encodeFrame, headerBytes, inlineMarker, kinds, tensorBytes } from "./wire.ts";

/** Limit in milliseconds of the processor time for reading one attack. It is far above the usual time and far below a stall. */
const processorMsMax = 1500;

export async function withinTime<Result>(work: () => Promise<Result>): Promise<Result> {
  const before = process.cpuUsage();
  const result = await work();
  const { user, system } = process.cpuUsage(before);
  assert.ok((user + system) / 1000 < processorMsMax, `reading it took ${(user + system) / 1000} ms of processor time`);
  return result;
}

interface WireOutput {
  readonly nameIndex: number;
  readonly datatype: number;
  readonly rank: number;
  readonly shape: readonly bigint[];
  readonly blockRef: number;
  readonly byteOffset: bigint;
  readonly byteLength: bigint;
}

interface HostileResponse {
  readonly status: number;
  readonly count: number | null;
  readonly text: string;
  readonly outputs: readonly WireOutput[];
}

function encodeOutput(one: WireOutput): Buffer {
  const record = Buffer.alloc(tensorBytes + 8 * one.shape.length);
  record.writeUInt16LE(one.nameIndex, 0);
  record.writeUInt8(one.datatype, 2);
  record.writeUInt8(one.rank, 3);
  record.writeUInt32LE(one.blockRef, 4);
  record.writeBigUInt64LE(BigInt.asUintN(64, one.byteOffset), 8);
  record.writeBigUInt64LE(BigInt.asUintN(64, one.byteLength), 16);
  one.shape.forEach((dim, axis) => record.writeBigUInt64LE(BigInt.asUintN(64, dim), tensorBytes + 8 * axis));
  return record;
}

/** Encodes a RESULT frame with any content, valid or not. */
export function encodeResult(
  executionId: number,
  responses: readonly HostileResponse[],
  more: { released?: readonly number[]; inline?: Uint8Array; durations?: readonly bigint[]; count?: number } = {},
): Buffer {
  return encodeResponses(responses, more, { kind: kinds.result, id: executionId });
}

/** Encodes a RESPONSE frame for a request of execution 1 with any content, valid or not. */
export function encodeDecoupledResponse(options: {
  readonly response: HostileResponse | null;
  readonly isFinal: boolean;
  readonly executionId?: number;
  readonly requestIndex?: number;
  readonly spaceRequestId?: number;
}): Buffer {
  const { response, isFinal, executionId = 1, requestIndex = 0, spaceRequestId = 0 } = options;
  const header = { kind: kinds.response, id: executionId, extra: isFinal ? 1 : 0 };
  const frame = encodeResponses(response === null ? [] : [response], { durations: [0n, 0n, 0n] }, header);
  frame.writeUInt32LE(spaceRequestId, 16 + 8);
  frame.writeUInt32LE(requestIndex, 16 + 12);
  return frame;
}

function encodeResponses(
  responses: readonly HostileResponse[],
  more: { released?: readonly number[]; inline?: Uint8Array; durations?: readonly bigint[]; count?: number },
  { kind, ...header }: { readonly kind: number; readonly id: number; readonly extra?: number },
): Buffer {
  const { released = [], inline = new Uint8Array(), durations = [1n, 1n, 1n], count = responses.length } = more;
  const head = Buffer.alloc(40);
  const ids = Buffer.alloc((released.length * 4 + 7) & ~7);
  released.forEach((id, index) => ids.writeUInt32LE(id, index * 4));
  const chunks: Buffer[] = [head, ids];
  let at = 16 + head.byteLength + ids.byteLength;
  const push = (chunk: Buffer) => {
    chunks.push(chunk);
    at += chunk.byteLength;
  };
  for (const { status, count: announced, text, outputs } of responses) {
    const bytes = Buffer.from(text);
    const record = Buffer.alloc(12);
    record.writeUInt16LE(status, 0);
    record.writeUInt16LE(announced ?? outputs.length, 2);
    record.writeUInt32LE(bytes.byteLength, 4);
    push(record);
    push(bytes);
    push(Buffer.alloc(-at & 7));
    for (const output of outputs) push(encodeOutput(output));
  }
  push(Buffer.alloc(-at & 15));
  head.writeUInt32LE(released.length, 0);
  head.writeUInt32LE(at, 4);
  durations.forEach((ns, index) => head.writeBigUInt64LE(BigInt.asUintN(64, ns), 16 + 8 * index));
  return encodeFrame(kind, Buffer.concat([...chunks, inline]), { ...header, count });
}

export function encodeSpaceRequest(executionId: number, sizes: readonly bigint[], extra = 0): Buffer {
  const body = Buffer.alloc(sizes.length * 8);
  sizes.forEach((size, index) => body.writeBigUInt64LE(BigInt.asUintN(64, size), index * 8));
  return encodeFrame(kinds.spaceRequest, body, { id: executionId, count: sizes.length, extra });
}

export function encodeReleased(ids: readonly number[]): Buffer {
  const body = Buffer.alloc(ids.length * 4);
  ids.forEach((id, index) => body.writeUInt32LE(id, index * 4));
  return encodeFrame(kinds.released, body, { extra: ids.length });
}

export const outputResponse = (text: string, outputs: readonly WireOutput[] = []): HostileResponse => ({
  status: 0,
  count: null,
  text,
  outputs,
});
export const output = (more: Partial<WireOutput> = {}): WireOutput => ({
  nameIndex: 0,
  datatype: 11,
  rank: 1,
  shape: [0n],
  blockRef: inlineMarker,
  byteOffset: 0n,
  byteLength: 0n,
  ...more,
});

/** An input of a CALL frame, valid or not. */
export interface WireInput {
  readonly nameIndex?: number;
  readonly datatype?: number;
  readonly shape?: readonly bigint[];
  readonly blockRef?: number;
  readonly byteOffset?: bigint;
  readonly byteLength?: bigint;
}

/** Encodes a CALL frame with any content, valid or not. */
export function encodeCall(
  id: number,
  text: unknown,
  { inputs = [], extra = 0, loans = 0 }: { inputs?: readonly WireInput[]; extra?: number; loans?: number } = {},
): Buffer {
  const json = Buffer.from(typeof text === "string" ? text : JSON.stringify(text));
  const records = inputs.map((input) => {
    const {
      nameIndex = 0,
      datatype = 7,
      shape = [4n],
      blockRef = inlineMarker,
      byteOffset = 0n,
      byteLength = 4n,
    } = input;
    const record = Buffer.alloc(tensorBytes + 8 * shape.length);
    record.writeUInt16LE(nameIndex, 0);
    record.writeUInt8(datatype, 2);
    record.writeUInt8(shape.length, 3);
    record.writeUInt32LE(blockRef, 4);
    record.writeBigUInt64LE(BigInt.asUintN(64, byteOffset), 8);
    record.writeBigUInt64LE(BigInt.asUintN(64, byteLength), 16);
    shape.forEach((dim, axis) => record.writeBigUInt64LE(BigInt.asUintN(64, dim), tensorBytes + 8 * axis));
    return record;
  });
  const padding = Buffer.alloc(-(headerBytes + 16 + json.byteLength) & 7);
  const body = Buffer.concat([Buffer.alloc(16), json, padding, ...records]);
  const inlineOffset = headerBytes + body.byteLength;
  body.writeUInt32LE(json.byteLength, 0);
  body.writeUInt32LE(inlineOffset, 4);
  body.writeUInt32LE(loans, 8);
  return encodeFrame(kinds.call, Buffer.concat([body, Buffer.alloc(4)]), { id, extra, count: inputs.length });
}

export function encodeCallSpaceRequest(id: number, ...sizes: bigint[]): Buffer {
  const body = Buffer.alloc(sizes.length * 8);
  sizes.forEach((size, index) => body.writeBigUInt64LE(BigInt.asUintN(64, size), index * 8));
  return encodeFrame(kinds.callSpaceRequest, body, { id, count: sizes.length });
}

/** Returns an execution without outcomes if the execution was not started; throws other errors. */
function ignoreNotStarted(error: unknown): Execution {
  if (!(error instanceof ExecutionNotStarted)) throw error;
  return { outcomes: [], computeInputNs: 0, computeInferNs: 0, computeOutputNs: 0 };
}

/**
 * Starts an execution with this many requests, each with an input in a lent block. `settled` resolves with the execution's result after its
 * tensors were released.
 */
export function execute(hostile: HostileInstance, requestCount: number): { settled: Promise<Execution> } {
  const { arena, instance } = hostile;
  const batch = Array.from({ length: requestCount }, (_, index) =>
    request([inArena(arena, tensor("IN", "UINT8", [4096 + index], new Uint8Array(4096 + index)))]),
  );
  const settled = instance
    .execute(batch)
    .catch(ignoreNotStarted)
    .then((execution) => {
      assert.ok(execution.outcomes.length === 0 || execution.outcomes.length === requestCount);
      for (const outcome of execution.outcomes)
        if (!(outcome instanceof InferenceError || outcome instanceof DeferredResponses)) releaseResponse(outcome);
      for (const { inputs } of batch) for (const input of inputs) input.block?.release();
      return execution;
    });
  return { settled };
}

/** Sends bytes, and resolves when the server has read all of them or has closed the socket. */
export async function send(hostile: { readonly socket: HostileInstance["socket"] }, bytes: Uint8Array): Promise<void> {
  if (hostile.socket.destroyed) return;
  await new Promise<void>((resolve) => hostile.socket.write(bytes, () => resolve()));
}
