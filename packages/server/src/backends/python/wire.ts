/**
 * The frames between the server and a worker, and the records between the server and a zygote: see `packages/server/python/WIRE.md`.
 * `execute-encoder.ts` writes what workers execute, `frame-decoder.ts` reads what they answer, `call-codec.ts` has the frames of models
 * that call others. The other side of the three is
 * `packages/server/python/galatea_worker/wire.py`; both sides read the golden bytes in `conformance/vectors`.
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
  callAnswer: 9,
  callSpace: 10,
  controlled: 11,
  metricAnswer: 12,
  hello: 65,
  loaded: 66,
  completed: 67,
  initialized: 68,
  result: 69,
  ask: 70,
  released: 71,
  log: 72,
  finalized: 73,
  failed: 74,
  response: 75,
  call: 76,
  callAsk: 77,
  callCancel: 78,
  callTaken: 79,
  control: 80,
  metricFamily: 81,
  metric: 82,
  metricValue: 83,
  metricsGone: 84,
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
export const inlinePlace = 0xffff_ffff;
export const allOutputs = 0xffff;
export const rankMax = 32;
/** Of a RESPONSE: its outputs lie in the arena where they are not small, and many answers may be under way at once. */
export const responseFrameBytesMax = 4 * 1024 * 1024;
/** What the fields of an EXECUTE frame can count. */
export const requestsMax = 0xffff;
export const inputsMax = 0xffff;
export const requestedMax = allOutputs - 1;
export const correlationTextBytesMax = 0xffff;
/** Of a request that belongs to a sequence. */
export const sequenceStart = 1;
export const sequenceEnd = 2;
export const statusBatchFailed = 1;
export const statusBatchOutOfMemory = 2;

/** A worker sent what it must not. It is ended; nothing of the record is used. */
export class MalformedRecord extends Error {
  constructor(what: string, options?: ErrorOptions) {
    super(`malformed record from a worker: ${what}`, options);
    this.name = "MalformedRecord";
  }

  /** A frame that cannot be read for a reason that nobody thought of ends its worker, and nobody else, all the same. */
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

/** A block of the arena as the wire names it. */
export interface WireLent {
  readonly lentId: number;
  /** Others read the block as well: the worker copies what its model might write to. */
  readonly isShared: boolean;
  readonly byteOffset: number;
  readonly byteLength: number;
}

export interface WireTensor {
  readonly nameIndex: number;
  /** The datatype's configuration number. */
  readonly datatype: number;
  readonly shape: readonly number[];
  /** null: inline, `data` is the bytes. Else an index into the loans (EXECUTE) or a lent id (RESULT). */
  readonly place: number | null;
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
  /** Output indices; null asks for all. */
  readonly requested: readonly number[] | null;
  readonly inputs: readonly WireTensor[];
}

export type WireResponse =
  | { readonly kind: "outputs"; readonly parametersJson: string; readonly outputs: readonly WireTensor[] }
  | { readonly kind: "error"; readonly code: number; readonly message: string };

/** A response in RESULT; of a model that is not decoupled it may come later, by itself. */
export type WireResultResponse = WireResponse | { readonly kind: "later" };

/** One answer of a decoupled model. */
export interface WireAnswer {
  readonly executionId: number;
  readonly place: number;
  /** Nothing follows. */
  readonly isFinal: boolean;
  /** Of the space that it lies in; 0 for none. */
  readonly askId: number;
  /** Null: the final flag alone. */
  readonly response: WireResponse | null;
}

export interface WireResult {
  readonly executionId: number;
  readonly released: readonly number[];
  readonly inputNs: number;
  readonly inferNs: number;
  readonly outputNs: number;
  /** null when the batch failed as a whole with `message`. */
  readonly responses: readonly WireResultResponse[] | null;
  readonly message: string;
  /** Of a batch that failed as a whole: the framework of the model said that there is no memory, by the type of its exception. */
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

/** SPACE: the blocks that were asked for, or why there are none; `askId` as in the ASK. */
export function encodeSpace(executionId: number, blocks: readonly WireLent[] | string, askId = 0): Buffer {
  const extra = askId * 2;
  if (typeof blocks === "string")
    return encodeFrame(kinds.space, Buffer.from(blocks), { id: executionId, extra: extra + 1 });
  return encodeFrame(kinds.space, lentRecords(blocks), { id: executionId, count: blocks.length, extra });
}

/** CREDIT: so many answers to the request at `place` have been taken. */
export function encodeCredit(executionId: number, place: number, count: number): Buffer {
  return encodeFrame(kinds.credit, new Uint8Array(), { id: executionId, extra: place, count });
}

/** The blocks one behind the other, as SPACE and CALL_SPACE have them. */
export function lentRecords(blocks: readonly WireLent[]): Buffer {
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

/** ASK ids fit beside the flag of SPACE. */
export const askIdMax = 0x3fff_ffff;

/** A natural number as 64 bits, without a BigInt: this runs several times per tensor. */
export function writeNatural(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true);
  view.setUint32(at + 4, Math.floor(value / 0x1_0000_0000), true);
}

/** Writes the record of a tensor whose bytes begin at `byteOffset` of the inline bytes or of its block; returns where it ends. */
export function writeTensor(view: DataView, at: number, tensor: WireTensor, byteOffset: number): number {
  const { nameIndex, datatype, shape, place, byteLength } = tensor;
  view.setUint16(at, nameIndex, true);
  view.setUint8(at + 2, datatype);
  view.setUint8(at + 3, shape.length);
  view.setUint32(at + 4, place ?? inlinePlace, true);
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
  /** The next frame is likely to follow within microseconds of the answer: the worker looks for it instead of sleeping. */
  readonly nextIsNear: boolean;
  readonly requests: readonly WireRequest[];
}
