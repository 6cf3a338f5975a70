import type { Failure } from "./failure-log.ts";
import { frameLimits } from "./frame-limits.ts";
import { readBoundedObject, readFlatObject, type FlatValue } from "./untrusted-json.ts";
import {
  spaceRequestIdMax,
  type FrameHeader,
  headerBytes,
  inlineMarker,
  MalformedRecord,
  rankMax,
  responseBytes,
  responseFrameBytesMax,
  resultHeadBytes,
  statusBatchFailed,
  statusBatchOutOfMemory,
  tensorBytes,
  type WireDecoupledResponse,
  type WireResultResponse,
  type WireResult,
  type WireTensor,
} from "./wire.ts";

/** Reads a frame from an untrusted process. Every read is checked against the end of the frame. */
export class FrameReader {
  readonly #frame: Buffer;
  readonly #view: DataView;
  at = headerBytes;

  constructor(frame: Buffer) {
    this.#frame = frame;
    this.#view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  }

  /** Skips `byteLength` bytes and returns their offset. */
  take(byteLength: number): number {
    const { at } = this;
    if (byteLength > this.#frame.byteLength - at) throw new MalformedRecord("it ends before its content does");
    this.at = at + byteLength;
    return at;
  }

  u8(at: number): number {
    return this.#view.getUint8(at);
  }

  u16(at: number): number {
    return this.#view.getUint16(at, true);
  }

  u32(at: number): number {
    return this.#view.getUint32(at, true);
  }

  natural(at: number): number {
    const high = this.#view.getUint32(at + 4, true);
    if (high > 0x1f_ffff) throw new MalformedRecord("a number beyond 2^53");
    return high * 0x1_0000_0000 + this.#view.getUint32(at, true);
  }

  text(byteLength: number): string {
    if (byteLength === 0) return "";
    const at = this.take(byteLength);
    return this.#frame.toString("utf8", at, at + byteLength);
  }

  align8(): void {
    this.take(-this.at & 7);
  }
}

export function readHeader(frame: Buffer): FrameHeader {
  return {
    kind: frame.readUInt16LE(4),
    count: frame.readUInt16LE(6),
    id: frame.readUInt32LE(8),
    extra: frame.readUInt32LE(12),
  };
}

/** Decodes a RESULT frame. The bytes of inline tensors are copied, because the frame's buffer is reused. */
export function decodeResult(frame: Buffer): WireResult {
  const { count, id, extra } = readHeader(frame);
  const reader = new FrameReader(frame);
  const head = reader.take(resultHeadBytes);
  const phaseNs = (at: number) => atMost(reader.natural(head + at), frameLimits.phaseNsMax, "nanoseconds");
  const released = readNumbers(reader, reader.u32(head));
  reader.align8();
  const result = {
    executionId: id,
    released,
    inputNs: phaseNs(16),
    inferNs: phaseNs(24),
    outputNs: phaseNs(32),
  };
  const isOutOfMemory = extra === statusBatchOutOfMemory;
  if (extra === statusBatchFailed || isOutOfMemory) {
    const messageBytes = atMost(reader.u32(head + 8), frameLimits.errorBytesMax, "bytes of an error's text");
    return { ...result, responses: null, message: reader.text(messageBytes), isOutOfMemory };
  }
  return { ...result, responses: readResponses(reader, frame, { head, count }), message: "", isOutOfMemory };
}

/** Decodes a RESPONSE frame. The bytes of inline tensors are copied, because the frame's buffer is reused. */
export function decodeResponse(frame: Buffer): WireDecoupledResponse {
  atMost(frame.byteLength, responseFrameBytesMax, "bytes of a response");
  const { count, id, extra } = readHeader(frame);
  const reader = new FrameReader(frame);
  const head = reader.take(resultHeadBytes);
  if (reader.u32(head) !== 0) throw new MalformedRecord("a response that releases blocks");
  const spaceRequestId = atMost(reader.u32(head + 8), spaceRequestIdMax, "as the id of a SPACE_REQUEST");
  const requestIndex = reader.u32(head + 12);
  if (extra > 1 || count > 1 || (count === 0 && extra === 0))
    throw new MalformedRecord(`a response frame of ${count} responses with flags ${extra}`);
  const [response] = readResponses(reader, frame, { head, count });
  if (response?.kind === "later") throw new MalformedRecord("a response marked as deferred");
  return { executionId: id, requestIndex, isFinal: extra === 1, spaceRequestId, response: response ?? null };
}

function readResponses(
  reader: FrameReader,
  frame: Buffer,
  { head, count }: { readonly head: number; readonly count: number },
): WireResultResponse[] {
  const inlineOffset = reader.u32(head + 4);
  if (inlineOffset < reader.at || inlineOffset > frame.byteLength)
    throw new MalformedRecord("its inline bytes are not where its head says");
  // Allocated from Node's shared pool. A separate allocation would cost more than decoding a small result.
  const inline = Buffer.allocUnsafe(frame.byteLength - inlineOffset);
  frame.copy(inline, 0, inlineOffset);
  const responses: WireResultResponse[] = [];
  let tensorCount = 0;
  for (let index = 0; index < count; index++) {
    const response = readResponse(reader, inline);
    if (response.kind === "outputs") tensorCount += response.outputs.length;
    atMost(tensorCount, frameLimits.tensorsMax, "outputs");
    responses.push(response);
  }
  if (reader.at > inlineOffset) throw new MalformedRecord("its responses run into its inline bytes");
  return responses;
}

function atMost(value: number, most: number, what: string): number {
  if (value > most) throw new MalformedRecord(`${value} ${what}`);
  return value;
}

function readNumbers(reader: FrameReader, count: number): number[] {
  atMost(count, frameLimits.releasedMax, "released blocks");
  const at = reader.take(count * 4);
  const numbers: number[] = [];
  for (let index = 0; index < count; index++) numbers.push(reader.u32(at + index * 4));
  return numbers;
}

function readResponse(reader: FrameReader, inline: Uint8Array): WireResultResponse {
  const at = reader.take(responseBytes);
  const status = reader.u16(at);
  const number = reader.u16(at + 2);
  const textBytes = reader.u32(at + 4);
  if (status === 1) atMost(textBytes, frameLimits.errorBytesMax, "bytes of an error's text");
  const text = reader.text(textBytes);
  reader.align8();
  if (status === 1) return { kind: "error", code: number, message: text };
  if (status === 2) return { kind: "later" };
  if (status !== 0) throw new MalformedRecord(`response status ${status}`);
  const outputs: WireTensor[] = [];
  for (let index = 0; index < number; index++) outputs.push(readTensor(reader, inline));
  return { kind: "outputs", parametersJson: text, outputs };
}

export function readTensor(reader: FrameReader, inline: Uint8Array): WireTensor {
  const at = reader.take(tensorBytes);
  const rank = reader.u8(at + 3);
  if (rank > rankMax) throw new MalformedRecord(`a tensor of ${rank} dimensions`);
  const blockRef = reader.u32(at + 4);
  const byteOffset = reader.natural(at + 8);
  const byteLength = reader.natural(at + 16);
  const dims = reader.take(rank * 8);
  const shape: number[] = [];
  for (let axis = 0; axis < rank; axis++) shape.push(reader.natural(dims + axis * 8));
  let data: Uint8Array | null = null;
  if (blockRef === inlineMarker) {
    if (byteOffset + byteLength > inline.byteLength) throw new MalformedRecord("an inline tensor outside the frame");
    data = new Uint8Array(inline.buffer, inline.byteOffset + byteOffset, byteLength);
  }
  return {
    nameIndex: reader.u16(at),
    datatype: reader.u8(at + 2),
    shape,
    blockRef: blockRef === inlineMarker ? null : blockRef,
    byteOffset,
    byteLength,
    data,
  };
}

/** Decodes a SPACE_REQUEST or CALL_SPACE_REQUEST frame: the sizes of the output blocks that the worker needs. */
export function decodeSpaceRequest(frame: Buffer): number[] {
  const reader = new FrameReader(frame);
  const { count } = readHeader(frame);
  const at = reader.take(count * 8);
  return Array.from({ length: count }, (_, index) => reader.natural(at + index * 8));
}

/** Decodes a RELEASED frame: the ids of lent blocks that the worker no longer uses. */
export function decodeReleased(frame: Buffer): number[] {
  return readNumbers(new FrameReader(frame), readHeader(frame).extra);
}

/** Decodes the JSON object in the body of a frame. */
export function decodeJson(frame: Buffer): Record<string, unknown> {
  return readBoundedObject(frame.subarray(headerBytes));
}

/** Decodes a RAISED frame: a failed execution. */
export function decodeRaised(frame: Buffer): Failure {
  const body = decodeFields(frame);
  const [message, request] = [body.get("message"), body.get("request")];
  if (typeof message !== "string" || typeof request !== "string")
    throw new MalformedRecord("a failure without its text or its requests");
  return { message, requestIds: [request] };
}

const textFrameMembersMax = 8;

/** Decodes the body of a LOG or FAILED frame: a flat object of texts and numbers. */
export function decodeFields(frame: Buffer): ReadonlyMap<string, FlatValue> {
  atMost(frame.byteLength, frameLimits.textFrameBytesMax, "bytes of a text");
  return readFlatObject(frame.toString("utf8", headerBytes), { left: textFrameMembersMax });
}
