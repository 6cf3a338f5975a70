import { assert } from "../../base/index.ts";

/**
 * The frames between the server and a worker, and the records between the server and a zygote. See `server/python/WIRE.md`.
 * The twin of this file is `server/python/galatea_worker/wire.py`; both read the golden bytes in `conformance/vectors`.
 */
export const kinds = {
  load: 1,
  complete: 2,
  initialize: 3,
  execute: 4,
  space: 5,
  finalize: 6,
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
  zygoteFork: 129,
  zygoteReady: 193,
  zygoteForked: 194,
  zygoteForkFailed: 195,
} as const;

export const headerBytes = 16;
export const frameBytesMax = 64 * 1024 * 1024;
const executeHeadBytes = 16;
const lentBytes = 24;
const requestBytes = 40;
const tensorBytes = 24;
const resultHeadBytes = 40;
const responseBytes = 12;
const inlinePlace = 0xffff_ffff;
const allOutputs = 0xffff;
const rankMax = 32;
const statusBatchFailed = 1;

/** A worker sent what it must not. It is ended; nothing of the record is used. */
export class MalformedRecord extends Error {
  constructor(what: string) {
    super(`malformed record from a worker: ${what}`);
    this.name = "MalformedRecord";
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

export interface WireResult {
  readonly executionId: number;
  readonly released: readonly number[];
  readonly inputNs: number;
  readonly inferNs: number;
  readonly outputNs: number;
  /** null when the batch failed as a whole with `message`. */
  readonly responses: readonly WireResponse[] | null;
  readonly message: string;
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

/** SPACE: the blocks that were asked for, or why there are none. */
export function encodeSpace(executionId: number, blocks: readonly WireLent[] | string): Buffer {
  if (typeof blocks === "string") return encodeFrame(kinds.space, Buffer.from(blocks), { id: executionId, extra: 1 });
  const body = Buffer.alloc(blocks.length * lentBytes);
  const view = new DataView(body.buffer, body.byteOffset);
  blocks.forEach((block, index) => writeLent(view, index * lentBytes, block));
  return encodeFrame(kinds.space, body, { id: executionId, count: blocks.length });
}

function writeLent(view: DataView, at: number, lent: WireLent): void {
  view.setUint32(at, lent.lentId, true);
  view.setUint32(at + 4, 0, true);
  writeNatural(view, at + 8, lent.byteOffset);
  writeNatural(view, at + 16, lent.byteLength);
}

/** A natural number as 64 bits, without a BigInt: this runs several times per tensor. */
function writeNatural(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true);
  view.setUint32(at + 4, Math.floor(value / 0x1_0000_0000), true);
}

export interface WireExecute {
  readonly executionId: number;
  readonly loans: readonly WireLent[];
  readonly spaces: readonly WireLent[];
  /** The next frame is likely to follow within microseconds of the answer: the worker looks for it instead of sleeping. */
  readonly nextIsNear: boolean;
  readonly requests: readonly WireRequest[];
}

/** Writes EXECUTE frames into one buffer that it keeps; a frame is good until the next call. */
export class ExecuteEncoder {
  #buffer = Buffer.allocUnsafeSlow(64 * 1024);
  #view = new DataView(this.#buffer.buffer);
  #at = 0;
  #inlineBytes = 0;
  #inline: { readonly at: number; readonly data: Uint8Array }[] = [];

  encode(execute: WireExecute): Buffer {
    const { loans, spaces, requests } = execute;
    this.#at = headerBytes + executeHeadBytes;
    this.#inlineBytes = 0;
    this.#inline.length = 0;
    this.#reserve((loans.length + spaces.length) * lentBytes);
    for (const lent of loans) this.#writeLent(lent);
    for (const lent of spaces) this.#writeLent(lent);
    for (const request of requests) this.#writeRequest(request);
    const inlineOffset = (this.#at + 15) & ~15;
    this.#reserve(16 + this.#inlineBytes);
    if (this.#inlineBytes === 0) this.#buffer.fill(0, this.#at, inlineOffset);
    // Gaps are zeroed: the buffer still holds what other frames, perhaps another tenant's, left in it.
    let end = this.#at;
    for (const piece of this.#inline) {
      const at = inlineOffset + piece.at;
      this.#buffer.fill(0, end, at);
      this.#buffer.set(piece.data, at);
      end = at + piece.data.byteLength;
    }
    this.#buffer.fill(0, end, inlineOffset + this.#inlineBytes);
    const frameBytes = inlineOffset + this.#inlineBytes;
    assert(frameBytes <= frameBytesMax, "an EXECUTE frame within its limit");
    const view = this.#view;
    view.setUint32(0, frameBytes, true);
    view.setUint16(4, kinds.execute, true);
    view.setUint16(6, requests.length, true);
    view.setUint32(8, execute.executionId, true);
    view.setUint32(12, execute.nextIsNear ? 1 : 0, true);
    view.setUint32(16, loans.length, true);
    view.setUint32(20, spaces.length, true);
    view.setUint32(24, inlineOffset, true);
    view.setUint32(28, 0, true);
    return this.#buffer.subarray(0, frameBytes);
  }

  #reserve(byteLength: number): void {
    const needed = this.#at + byteLength;
    if (needed <= this.#buffer.byteLength) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.byteLength * 2));
    grown.set(this.#buffer.subarray(0, this.#at));
    this.#buffer = grown;
    this.#view = new DataView(grown.buffer);
  }

  #writeLent(lent: WireLent): void {
    writeLent(this.#view, this.#at, lent);
    this.#at += lentBytes;
  }

  #writeRequest(request: WireRequest): void {
    const idBytes = request.requestId === "" ? 0 : Buffer.byteLength(request.requestId);
    const parametersBytes = request.parametersJson === "" ? 0 : Buffer.byteLength(request.parametersJson);
    const text = typeof request.correlation === "string" ? request.correlation : "";
    const textBytes = text === "" ? 0 : Buffer.byteLength(text);
    assert(textBytes < 0x1_0000 && request.inputs.length < 0x1_0000, "a request within the wire's counts");
    const requested = request.requested;
    this.#reserve(requestBytes + (requested?.length ?? 0) * 2 + idBytes + textBytes + parametersBytes + 8);
    const view = this.#view;
    const at = this.#at;
    view.setUint16(at, request.inputs.length, true);
    view.setUint16(at + 2, requested === null ? allOutputs : requested.length, true);
    view.setUint16(at + 4, textBytes, true);
    view.setUint16(at + 6, 0, true);
    view.setUint32(at + 8, idBytes, true);
    view.setUint32(at + 12, parametersBytes, true);
    view.setUint32(at + 16, request.flags, true);
    view.setUint32(at + 20, 0, true);
    if (typeof request.correlation === "bigint" && request.correlation !== 0n)
      view.setBigUint64(at + 24, request.correlation, true);
    else writeNatural(view, at + 24, 0);
    writeNatural(view, at + 32, request.timeoutUs);
    this.#at += requestBytes;
    for (const index of requested ?? []) {
      view.setUint16(this.#at, index, true);
      this.#at += 2;
    }
    if (idBytes > 0) this.#at += this.#buffer.write(request.requestId, this.#at);
    if (textBytes > 0) this.#at += this.#buffer.write(text, this.#at);
    if (parametersBytes > 0) this.#at += this.#buffer.write(request.parametersJson, this.#at);
    while ((this.#at & 7) !== 0) this.#buffer[this.#at++] = 0;
    for (const tensor of request.inputs) this.#writeTensor(tensor);
  }

  #writeTensor(tensor: WireTensor): void {
    const rank = tensor.shape.length;
    this.#reserve(tensorBytes + rank * 8);
    const view = this.#view;
    const at = this.#at;
    let byteOffset = tensor.byteOffset;
    if (tensor.data !== null) {
      byteOffset = (this.#inlineBytes + 15) & ~15;
      this.#inline.push({ at: byteOffset, data: tensor.data });
      this.#inlineBytes = byteOffset + tensor.byteLength;
    }
    view.setUint16(at, tensor.nameIndex, true);
    view.setUint8(at + 2, tensor.datatype);
    view.setUint8(at + 3, rank);
    view.setUint32(at + 4, tensor.place ?? inlinePlace, true);
    writeNatural(view, at + 8, byteOffset);
    writeNatural(view, at + 16, tensor.byteLength);
    for (let axis = 0; axis < rank; axis++) writeNatural(view, at + tensorBytes + axis * 8, tensor.shape[axis]!);
    this.#at = at + tensorBytes + rank * 8;
  }
}

/** Reads a frame that cannot be trusted: every read is checked against the frame's end. */
class FrameReader {
  readonly #frame: Buffer;
  readonly #view: DataView;
  at = headerBytes;

  constructor(frame: Buffer) {
    this.#frame = frame;
    this.#view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  }

  /** Moves past `byteLength` bytes and says where they began. */
  take(byteLength: number): number {
    const { at } = this;
    if (byteLength > this.#frame.byteLength - at) throw new MalformedRecord("it ends before its content does");
    this.at = at + byteLength;
    return at;
  }

  u8 = (at: number) => this.#view.getUint8(at);
  u16 = (at: number) => this.#view.getUint16(at, true);
  u32 = (at: number) => this.#view.getUint32(at, true);

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

/** A RESULT frame. Inline tensors' bytes are copied out, once for all of them: the frame's buffer is used again. */
export function decodeResult(frame: Buffer): WireResult {
  const { count, id, extra } = readHeader(frame);
  const reader = new FrameReader(frame);
  const head = reader.take(resultHeadBytes);
  const released = readNumbers(reader, reader.u32(head));
  reader.align8();
  const result = {
    executionId: id,
    released,
    inputNs: reader.natural(head + 16),
    inferNs: reader.natural(head + 24),
    outputNs: reader.natural(head + 32),
  };
  if (extra === statusBatchFailed) return { ...result, responses: null, message: reader.text(reader.u32(head + 8)) };
  const inlineOffset = reader.u32(head + 4);
  if (inlineOffset < reader.at || inlineOffset > frame.byteLength)
    throw new MalformedRecord("its inline bytes lie elsewhere");
  const inline = new Uint8Array(frame.byteLength - inlineOffset);
  inline.set(frame.subarray(inlineOffset));
  const responses: WireResponse[] = [];
  for (let index = 0; index < count; index++) responses.push(readResponse(reader, inline));
  if (reader.at > inlineOffset) throw new MalformedRecord("its responses run into its inline bytes");
  return { ...result, responses, message: "" };
}

function readNumbers(reader: FrameReader, count: number): number[] {
  const at = reader.take(count * 4);
  const numbers: number[] = [];
  for (let index = 0; index < count; index++) numbers.push(reader.u32(at + index * 4));
  return numbers;
}

function readResponse(reader: FrameReader, inline: Uint8Array): WireResponse {
  const at = reader.take(responseBytes);
  const status = reader.u16(at);
  const number = reader.u16(at + 2);
  const text = reader.text(reader.u32(at + 4));
  reader.align8();
  if (status === 1) return { kind: "error", code: number, message: text };
  if (status !== 0) throw new MalformedRecord(`response status ${status}`);
  const outputs: WireTensor[] = [];
  for (let index = 0; index < number; index++) outputs.push(readTensor(reader, inline));
  return { kind: "outputs", parametersJson: text, outputs };
}

function readTensor(reader: FrameReader, inline: Uint8Array): WireTensor {
  const at = reader.take(tensorBytes);
  const rank = reader.u8(at + 3);
  if (rank > rankMax) throw new MalformedRecord(`a tensor of ${rank} dimensions`);
  const place = reader.u32(at + 4);
  const byteOffset = reader.natural(at + 8);
  const byteLength = reader.natural(at + 16);
  const dims = reader.take(rank * 8);
  const shape: number[] = [];
  for (let axis = 0; axis < rank; axis++) shape.push(reader.natural(dims + axis * 8));
  let data: Uint8Array | null = null;
  if (place === inlinePlace) {
    if (byteOffset + byteLength > inline.byteLength) throw new MalformedRecord("an inline tensor beyond the frame");
    data = new Uint8Array(inline.buffer, byteOffset, byteLength);
  }
  const { u16, u8 } = reader;
  return {
    nameIndex: u16(at),
    datatype: u8(at + 2),
    shape,
    place: place === inlinePlace ? null : place,
    byteOffset,
    byteLength,
    data,
  };
}

/** An ASK frame: the sizes of the output space that the worker needs. */
export function decodeAsk(frame: Buffer): number[] {
  const reader = new FrameReader(frame);
  const { count } = readHeader(frame);
  const at = reader.take(count * 8);
  return Array.from({ length: count }, (_, index) => reader.natural(at + index * 8));
}

/** A RELEASED frame: lent blocks that the worker sees no more. */
export function decodeReleased(frame: Buffer): number[] {
  return readNumbers(new FrameReader(frame), readHeader(frame).extra);
}

/** The body of a frame that carries JSON. */
export function decodeJson(frame: Buffer): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(frame.toString("utf8", headerBytes));
    if (typeof body === "object" && body !== null && !Array.isArray(body)) return body as Record<string, unknown>;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new MalformedRecord("a body that is no JSON object");
}
