/**
 * The frames between the server and a worker, and between the server and a zygote, specified in `packages/server/python/WIRE.md`.
 * `execute-encoder.ts` encodes executions, `frame-decoder.ts` decodes workers' responses, `call-codec.ts` handles calls to other models.
 * The Python side is `packages/server/python/galatea_worker/wire.py`. Both sides are tested against the same bytes in
 * `conformance/vectors`.
 */
export const kinds = {
  load: 1,
  complete: 2,
  initialize: 3,
  execute: 4,
  space: 5,
  finalize: 6,
  cancel: 7,
  credit: 8,
  callResponse: 9,
  callSpace: 10,
  controlResult: 11,
  metricResult: 12,
  hello: 65,
  loaded: 66,
  completed: 67,
  initialized: 68,
  result: 69,
  spaceRequest: 70,
  released: 71,
  log: 72,
  finalized: 73,
  failed: 74,
  response: 75,
  call: 76,
  callSpaceRequest: 77,
  callCancel: 78,
  callCredit: 79,
  control: 80,
  metricFamily: 81,
  metric: 82,
  metricValue: 83,
  metricsReleased: 84,
  raised: 85,
  zygoteFork: 129,
  zygoteReady: 193,
  zygoteForked: 194,
  zygoteForkFailed: 195,
} as const;

export const headerBytes = 16;
export const frameBytesMax = 64 * 1024 * 1024;
export const executeHeadBytes = 16;
export const lentBytes = 24;
export const requestBytes = 40;
export const tensorBytes = 24;
export const resultHeadBytes = 40;
export const responseBytes = 12;
export const inlineMarker = 0xffff_ffff;
export const allOutputs = 0xffff;
export const rankMax = 32;
/** Limit of a RESPONSE frame in bytes. Larger outputs must be in the arena, because many responses may be in flight at once. */
export const responseFrameBytesMax = 4 * 1024 * 1024;
/** Limits that follow from the sizes of fields in an EXECUTE frame. */
export const requestsMax = 0xffff;
export const inputsMax = 0xffff;
export const requestedMax = allOutputs - 1;
export const correlationTextBytesMax = 0xffff;
/** Flags of a request that belongs to a sequence. */
export const sequenceStart = 1;
export const sequenceEnd = 2;
export const statusBatchFailed = 1;
export const statusBatchOutOfMemory = 2;

/** An invalid frame from a worker. The worker is killed, and no part of the frame is used. */
export class MalformedRecord extends Error {
  constructor(what: string, options?: ErrorOptions) {
    super(`malformed record from a worker: ${what}`, options);
    this.name = "MalformedRecord";
  }

  /** Converts any error that occurs while a frame is decoded, so that even an unexpected error ends only the worker. */
  static from(thrown: unknown): MalformedRecord {
    if (thrown instanceof MalformedRecord) return thrown;
    const why = thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : "it cannot be read";
    return new MalformedRecord(why, { cause: thrown });
  }
}

export interface FrameHeader {
  readonly kind: number;
  readonly count: number;
  readonly id: number;
  readonly extra: number;
}

/** A block of the arena that is lent to a worker. */
export interface WireLent {
  readonly lentId: number;
  /** True if the block has other readers. The worker then copies tensors that its model might write to. */
  readonly isShared: boolean;
  readonly byteOffset: number;
  readonly byteLength: number;
}

export interface WireTensor {
  readonly nameIndex: number;
  /** Number of the datatype in Triton's configuration. */
  readonly datatype: number;
  readonly shape: readonly number[];
  /**
   * Location of the bytes: null for inline bytes in `data`. Otherwise an index into the lent blocks (EXECUTE) or the id of a lent block
   * (RESULT).
   */
  readonly blockRef: number | null;
  readonly byteOffset: number;
  readonly byteLength: number;
  readonly data: Uint8Array | null;
}

export interface WireRequest {
  readonly requestId: string;
  readonly parametersJson: string;
  readonly correlation: bigint | string;
  readonly flags: number;
  readonly timeoutUs: number;
  /** Indices of the requested outputs; null selects all. */
  readonly requested: readonly number[] | null;
  readonly inputs: readonly WireTensor[];
}

export type WireResponse =
  | { readonly kind: "outputs"; readonly parametersJson: string; readonly outputs: readonly WireTensor[] }
  | { readonly kind: "error"; readonly code: number; readonly message: string };

/** A response in a RESULT frame. `later` means that the model will send the response separately although it is not decoupled. */
export type WireResultResponse = WireResponse | { readonly kind: "later" };

/** A response that is sent separately. */
export interface WireDecoupledResponse {
  readonly executionId: number;
  readonly requestIndex: number;
  /** True if no further response follows. */
  readonly isFinal: boolean;
  /** Id of the SPACE_REQUEST frame that requested the memory for this response; 0 for none. */
  readonly spaceRequestId: number;
  /** The response; null if the frame only has the final flag. */
  readonly response: WireResponse | null;
}

export interface WireResult {
  readonly executionId: number;
  readonly released: readonly number[];
  readonly inputNs: number;
  readonly inferNs: number;
  readonly outputNs: number;
  /** The responses; null if the whole batch failed, and `message` has the reason. */
  readonly responses: readonly WireResultResponse[] | null;
  readonly message: string;
  /** True if the whole batch failed because the model's framework ran out of memory, as the type of the exception shows. */
  readonly isOutOfMemory: boolean;
}

export function encodeFrame(kind: number, body: Uint8Array, header: Partial<FrameHeader> = {}): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + body.byteLength);
  frame.writeUInt32LE(frame.byteLength, 0);
  frame.writeUInt16LE(kind, 4);
  frame.writeUInt16LE(header.count ?? 0, 6);
  frame.writeUInt32LE(header.id ?? 0, 8);
  frame.writeUInt32LE(header.extra ?? 0, 12);
  frame.set(body, headerBytes);
  return frame;
}

export function encodeJson(kind: number, body: unknown): Buffer {
  return encodeFrame(kind, Buffer.from(JSON.stringify(body)));
}

/** Encodes a SPACE frame: the requested blocks, or the reason why there are none. `spaceRequestId` is the id of the SPACE_REQUEST frame. */
export function encodeSpace(executionId: number, blocks: readonly WireLent[] | string, spaceRequestId = 0): Buffer {
  const extra = spaceRequestId * 2;
  if (typeof blocks === "string")
    return encodeFrame(kinds.space, Buffer.from(blocks), { id: executionId, extra: extra + 1 });
  return encodeFrame(kinds.space, encodeLentBlocks(blocks), { id: executionId, count: blocks.length, extra });
}

/** Encodes a CREDIT frame: the client has read this many responses to the request at index `requestIndex`. */
export function encodeCredit(executionId: number, requestIndex: number, count: number): Buffer {
  return encodeFrame(kinds.credit, new Uint8Array(), { id: executionId, extra: requestIndex, count });
}

/** Encodes consecutive block records for SPACE and CALL_SPACE frames. */
export function encodeLentBlocks(blocks: readonly WireLent[]): Buffer {
  const records = Buffer.alloc(blocks.length * lentBytes);
  const view = new DataView(records.buffer, records.byteOffset);
  blocks.forEach((block, index) => writeLent(view, index * lentBytes, block));
  return records;
}

export function writeLent(view: DataView, at: number, lent: WireLent): void {
  view.setUint32(at, lent.lentId, true);
  view.setUint32(at + 4, lent.isShared ? 1 : 0, true);
  writeNatural(view, at + 8, lent.byteOffset);
  writeNatural(view, at + 16, lent.byteLength);
}

/** Maximum id of a SPACE_REQUEST frame. The id shares a field with a flag in the SPACE frame. */
export const spaceRequestIdMax = 0x3fff_ffff;

/** Writes a natural number as 64 bits. BigInt is avoided because it is slow, and this function runs several times for each tensor. */
export function writeNatural(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true);
  view.setUint32(at + 4, Math.floor(value / 0x1_0000_0000), true);
}

/**
 * Writes the record of a tensor, whose bytes begin at `byteOffset` of the frame's inline bytes or of the tensor's block. Returns the offset
 * after the record.
 */
export function writeTensor(view: DataView, at: number, tensor: WireTensor, byteOffset: number): number {
  const { nameIndex, datatype, shape, blockRef, byteLength } = tensor;
  view.setUint16(at, nameIndex, true);
  view.setUint8(at + 2, datatype);
  view.setUint8(at + 3, shape.length);
  view.setUint32(at + 4, blockRef ?? inlineMarker, true);
  writeNatural(view, at + 8, byteOffset);
  writeNatural(view, at + 16, byteLength);
  let end = at + tensorBytes;
  for (let axis = 0; axis < shape.length; axis++, end += 8) writeNatural(view, end, shape[axis]!);
  return end;
}

export interface WireExecute {
  readonly executionId: number;
  readonly loans: readonly WireLent[];
  readonly spaces: readonly WireLent[];
  /** True if the next frame probably follows within microseconds of the response. The worker then polls for it instead of sleeping. */
  readonly nextIsNear: boolean;
  readonly requests: readonly WireRequest[];
}
