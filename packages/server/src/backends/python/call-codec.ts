import { FrameReader, readHeader, readTensor } from "./frame-decoder.ts";
import { frameLimits } from "./frame-limits.ts";
import { readBoundedObject } from "./untrusted-json.ts";
import {
  encodeFrame,
  headerBytes,
  kinds,
  lentBytes,
  encodeLentBlocks,
  MalformedRecord,
  tensorBytes,
  type WireLent,
  type WireTensor,
  writeLent,
  writeTensor,
} from "./wire.ts";

/**
 * The frames with which models call or load other models, specified in `packages/server/python/WIRE.md`. The worker's side is
 * `packages/server/python/galatea_worker/call_wire.py`. Both sides are tested against the same bytes in `conformance/vectors`.
 */
const headBytes = 16;
const streamed = 1;

/** A call from one model to another, as the worker sends it. The types are checked; names and ids are not. */
export interface WireCall {
  readonly callId: number;
  /** True if the worker accepts any number of responses, and acknowledges each. */
  readonly isStreamed: boolean;
  /** Id of the calling execution; null for a call outside of any execution. */
  readonly executionId: number | null;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly requestId: string;
  readonly correlation: bigint | string;
  readonly flags: number;
  readonly timeoutUs: number;
  /** Names of the requested outputs; null selects all. */
  readonly requested: readonly string[] | null;
  readonly parametersJson: string;
  /** `nameIndex` is an index into `names`. `blockRef` is the id of a lent block, which may have been lent for this call. */
  readonly names: readonly string[];
  readonly inputs: readonly WireTensor[];
}

export interface WireCallResponse {
  readonly callId: number;
  readonly isLast: boolean;
  readonly loans: readonly WireLent[];
  readonly response:
    | {
        readonly kind: "outputs";
        readonly names: readonly string[];
        readonly parametersJson: string;
        /** `blockRef` is an index into `loans`. */
        readonly outputs: readonly WireTensor[];
      }
    | { readonly kind: "error"; readonly code: number; readonly message: string }
    /** The call ends without a further response. */
    | { readonly kind: "none" };
}

export const controlVerbs = { load: 1, unload: 2, ready: 3 } as const;

export interface WireControl {
  readonly controlId: number;
  readonly verb: number;
  readonly modelName: string;
  readonly modelVersion: string;
  readonly configJson: string | null;
  readonly unloadDependents: boolean;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/** Decodes a CALL frame. The bytes of inline tensors are copied, because the frame's buffer is reused. */
export function decodeCall(frame: Buffer): WireCall {
  const { count, id, extra } = readHeader(frame);
  if (extra > streamed) throw new MalformedRecord(`a call with flags ${extra}`);
  const reader = new FrameReader(frame);
  const head = reader.take(headBytes);
  const inlineOffset = reader.u32(head + 4);
  if (reader.u32(head + 8) !== 0) throw new MalformedRecord("a call that lends blocks");
  const fields = readText(reader, frame, reader.u32(head));
  reader.align8();
  if (inlineOffset < reader.at || inlineOffset > frame.byteLength)
    throw new MalformedRecord("its inline bytes are not where its head says");
  const inline = new Uint8Array(frame.byteLength - inlineOffset);
  inline.set(frame.subarray(inlineOffset));
  const inputs: WireTensor[] = [];
  for (let index = 0; index < count; index++) inputs.push(readTensor(reader, inline));
  if (reader.at > inlineOffset) throw new MalformedRecord("its tensors run into its inline bytes");
  const names = textsOf(fields["names"]);
  for (const { nameIndex } of inputs)
    if (nameIndex >= names.length) throw new MalformedRecord(`input ${nameIndex} of ${names.length}`);
  return {
    callId: id,
    isStreamed: extra === streamed,
    executionId: fields["execution"] === null ? null : naturalOf(fields["execution"], 0xffff_ffff),
    modelName: textOf(fields["model"]),
    modelVersion: textOf(fields["version"]),
    requestId: textOf(fields["id"]),
    correlation: correlationOf(fields["correlation"]),
    flags: naturalOf(fields["flags"], 0xffff_ffff),
    timeoutUs: naturalOf(fields["timeout"], Number.MAX_SAFE_INTEGER),
    requested: fields["outputs"] === null ? null : textsOf(fields["outputs"]),
    parametersJson: textOf(fields["parameters"]),
    names,
    inputs,
  };
}

/** Decodes a CONTROL frame. The contents of files are copied. */
export function decodeControl(frame: Buffer): WireControl {
  const { count, id, extra } = readHeader(frame);
  const reader = new FrameReader(frame);
  const fields = readText(reader, frame, reader.u32(reader.take(8)));
  const paths = textsOf(fields["files"]);
  const lengths = fields["lengths"];
  if (!Array.isArray(lengths) || lengths.length !== count || paths.length !== count)
    throw new MalformedRecord("files without their lengths");
  const files = new Map<string, Uint8Array>();
  paths.forEach((path, index) => {
    const at = reader.take(naturalOf(lengths[index], frame.byteLength));
    files.set(path, Uint8Array.from(frame.subarray(at, reader.at)));
  });
  return {
    controlId: id,
    verb: extra,
    modelName: textOf(fields["model"]),
    modelVersion: textOf(fields["version"]),
    configJson: fields["config"] === null ? null : textOf(fields["config"]),
    unloadDependents: fields["dependents"] === true,
    files,
  };
}

/** Encodes a CALL_SPACE frame: the blocks that a call requested, or the reason why there are none. */
export function encodeCallSpace(callId: number, blocks: readonly WireLent[] | string): Buffer {
  if (typeof blocks === "string") return encodeFrame(kinds.callSpace, Buffer.from(blocks), { id: callId, extra: 1 });
  return encodeFrame(kinds.callSpace, encodeLentBlocks(blocks), { id: callId, count: blocks.length });
}

/** Encodes a CONTROL_RESULT frame: the result of a CONTROL frame. */
export function encodeControlResponse(
  controlId: number,
  fields: { readonly ready: boolean } | { readonly code: number; readonly message: string },
): Buffer {
  return encodeFrame(kinds.controlResult, Buffer.from(JSON.stringify(fields)), { id: controlId });
}

/** Encodes a CALL_RESPONSE frame. */
export function encodeCallResponse({ callId, isLast, loans, response }: WireCallResponse): Buffer {
  const { outputs, fields } = contentOf(response);
  const text = Buffer.from(JSON.stringify(fields));
  const loansAt = headerBytes + headBytes;
  const textAt = loansAt + loans.length * lentBytes;
  const tensorsAt = (textAt + text.byteLength + 7) & ~7;
  let inlineOffset = tensorsAt;
  for (const { shape } of outputs) inlineOffset += tensorBytes + 8 * shape.length;
  inlineOffset = (inlineOffset + 15) & ~15;
  let end = inlineOffset;
  for (const { data, byteLength } of outputs) if (data !== null) end = ((end + 15) & ~15) + byteLength;
  const frame = Buffer.alloc(end);
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  view.setUint32(0, end, true);
  view.setUint16(4, kinds.callResponse, true);
  view.setUint16(6, outputs.length, true);
  view.setUint32(8, callId, true);
  view.setUint32(12, isLast ? 1 : 0, true);
  view.setUint32(16, text.byteLength, true);
  view.setUint32(20, inlineOffset, true);
  view.setUint32(24, loans.length, true);
  loans.forEach((lent, index) => writeLent(view, loansAt + index * lentBytes, lent));
  frame.set(text, textAt);
  let at = tensorsAt;
  let inlineAt = inlineOffset;
  for (const output of outputs) {
    if (output.data === null) {
      at = writeTensor(view, at, output, output.byteOffset);
      continue;
    }
    inlineAt = (inlineAt + 15) & ~15;
    frame.set(output.data, inlineAt);
    at = writeTensor(view, at, output, inlineAt - inlineOffset);
    inlineAt += output.byteLength;
  }
  return frame;
}

function contentOf(response: WireCallResponse["response"]): { outputs: readonly WireTensor[]; fields: object } {
  if (response.kind === "outputs")
    return { outputs: response.outputs, fields: { names: response.names, parameters: response.parametersJson } };
  if (response.kind === "error") return { outputs: [], fields: { code: response.code, message: response.message } };
  return { outputs: [], fields: {} };
}

function readText(reader: FrameReader, frame: Buffer, byteLength: number): Record<string, unknown> {
  const at = reader.take(byteLength);
  return readBoundedObject(frame.subarray(at, at + byteLength));
}

function textOf(value: unknown): string {
  if (typeof value !== "string") throw new MalformedRecord("an invalid string");
  return value;
}

function textsOf(value: unknown): string[] {
  if (!Array.isArray(value) || value.length > frameLimits.callNamesMax) throw new MalformedRecord("invalid names");
  return value.map(textOf);
}

function naturalOf(value: unknown, most: number): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > most)
    throw new MalformedRecord("a number that is invalid or out of range");
  return value;
}

/** Decodes a correlation id: `["7"]` is a 64-bit number, `"7"` a text. */
function correlationOf(value: unknown): bigint | string {
  if (!Array.isArray(value)) return textOf(value);
  const digits = textOf(value[0]);
  if (!/^\d{1,20}$/.test(digits)) throw new MalformedRecord("a correlation id that is not a number");
  return BigInt.asUintN(64, BigInt(digits));
}
