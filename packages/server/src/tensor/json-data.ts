import { InferenceError } from "@galatea/base";
import type { Datatype } from "./datatype.ts";
import { readPlainFloats } from "./json-plain-floats.ts";
import type { JsonScanner, NumberKind } from "./json-scanner.ts";
import { unescapeJsonString } from "./json-string.ts";

export interface JsonDataTarget {
  readonly datatype: Exclude<Datatype, "FP16" | "BF16">;
  /** Number of elements that the shape requires. Not checked for BYTES, whose elements Triton's core counts later. */
  readonly count: number;
  /** Buffer for the elements: `count` times the element size; for BYTES at least `jsonBytesLengthMax`. */
  readonly into: Uint8Array;
}

/**
 * Returns an upper bound of the size of a BYTES tensor read from `textLength` bytes of JSON. An element of n bytes needs at least n + 3
 * bytes of JSON (quotes and a comma) and n + 4 bytes in the tensor. Each element therefore adds at most one byte, and there are at most
 * textLength / 3 elements.
 */
export function jsonBytesLengthMax(textLength: number): number {
  return textLength + Math.ceil(textLength / 3);
}

/** Returns the maximum number of elements in `textLength` bytes of JSON. Each element needs at least one byte and a separator. */
export function jsonElementsMax(textLength: number): number {
  return textLength >>> 1;
}

type WriteElement = (run: Run) => void;

interface Run {
  readonly scanner: JsonScanner;
  readonly view: DataView;
  readonly into: Uint8Array;
  readonly count: number;
  readonly write: WriteElement;
  readonly elementBytes: number;
  index: number;
  offset: number;
  /** Number of open arrays. */
  depth: number;
}

/**
 * Reads the `data` array at the scanner's position, flat or nested, into `target.into`, in chunks and without creating objects for the
 * numbers. The JSON must have been checked, and no other code may move the scanner. Throws INTERNAL for a wrong JSON type or count, with
 * Triton's text except for its prefix `Unable to parse 'data': `.
 */
export class JsonDataReader {
  readonly #run: Run;
  readonly #target: JsonDataTarget;

  constructor(scanner: JsonScanner, target: JsonDataTarget) {
    if (scanner.kind() !== "array") throw new InferenceError("INTERNAL", "attempt to access JSON non-array as array");
    this.#run = newRun(scanner, target);
    this.#target = target;
    if (scanner.open(0x5d)) this.#run.depth = 1;
  }

  /** Number of bytes written so far. */
  get byteLength(): number {
    return this.#run.offset;
  }

  /** Reads about `textBytes` more of the JSON, up to the end of an element; returns true at the end of the array. */
  advance(textBytes: number): boolean {
    const run = this.#run;
    if (!readElements(run, run.scanner.at + textBytes)) return false;
    if (run.count !== Infinity && run.index !== this.#target.count) throw shapeMismatch();
    return true;
  }
}

/**
 * Reads the single element at the scanner's position, outside of any array. A string takes at most two bytes more in the tensor than in the
 * JSON.
 */
export function readJsonElement(scanner: JsonScanner, target: Omit<JsonDataTarget, "count">): number {
  const run = newRun(scanner, { ...target, count: 1 });
  run.write(run);
  return run.offset + run.elementBytes;
}

function newRun(scanner: JsonScanner, target: JsonDataTarget): Run {
  const row = elementRows[target.datatype];
  const { into } = target;
  return {
    scanner,
    view: new DataView(into.buffer, into.byteOffset, into.byteLength),
    into,
    count: target.datatype === "BYTES" ? Infinity : target.count,
    write: row.write,
    elementBytes: row.bytes,
    index: 0,
    offset: 0,
    depth: 0,
  };
}

/** Reads array elements up to the offset `untilAt`; returns true when it has reached the end of the outermost array. */
function readElements(run: Run, untilAt: number): boolean {
  const { scanner } = run;
  while (run.depth > 0) {
    if (run.write === writeFloat32) readFloats(run, untilAt);
    if (scanner.at >= untilAt) return false;
    if (scanner.peek() === 0x5b) {
      if (scanner.open(0x5d)) {
        run.depth++;
        continue;
      }
    } else {
      if (run.index === run.count) throw shapeMismatch();
      run.write(run);
      run.offset += run.elementBytes;
      run.index++;
    }
    while (!scanner.more(0x5d)) if (--run.depth === 0) return true;
  }
  return true;
}

/** Reads FP32 numbers in their usual forms; `writeFloat32` reads all others. */
function readFloats(run: Run, untilAt: number): void {
  const target = { view: run.view, offset: run.offset, countMax: run.count - run.index };
  const count = readPlainFloats(run.scanner, target, untilAt);
  run.index += count;
  run.offset += 4 * count;
}

function shapeMismatch(): InferenceError {
  return new InferenceError("INTERNAL", "Shape does not match true shape of 'data' field");
}

function wrongType(expected: string, as: string): InferenceError {
  const reason = as === "string" ? "not-a-string" : null;
  return new InferenceError("INTERNAL", `attempt to access JSON non-${expected} as ${as}`, { reason });
}

function isNumberStart(byte: number): boolean {
  return byte === 0x2d || (byte >= 0x30 && byte <= 0x39) || byte === 0x4e || byte === 0x49;
}

function writeFloat32(run: Run): void {
  const { scanner } = run;
  if (!isNumberStart(scanner.peek())) throw wrongType("number", "double");
  const start = scanner.at;
  scanner.number();
  let value = scanner.value;
  if (!scanner.exact) {
    // The relative error of the approximation is at most 2^-50. If both ends of that interval round to the same float32, this float32 is
    // the correct result.
    const low = Math.fround(value * (1 - 2 ** -49));
    value = low === Math.fround(value * (1 + 2 ** -49)) ? low : scanner.exactDouble(start);
  }
  run.view.setFloat32(run.offset, value, true);
}

function writeFloat64(run: Run): void {
  const { scanner } = run;
  if (!isNumberStart(scanner.peek())) throw wrongType("number", "double");
  const start = scanner.at;
  scanner.number();
  run.view.setFloat64(run.offset, scanner.exact ? scanner.value : scanner.exactDouble(start), true);
}

function writeBool(run: Run): void {
  const { scanner } = run;
  const byte = scanner.peek();
  if (byte !== 0x74 && byte !== 0x66) throw wrongType("boolean", "boolean");
  scanner.at += byte === 0x74 ? 4 : 5;
  run.into[run.offset] = byte === 0x74 ? 1 : 0;
}

function writeString(run: Run): void {
  if (run.scanner.peek() !== 0x22) throw wrongType("string", "string");
  const start = run.offset + 4;
  const end = unescapeJsonString(run.scanner, run.into, start);
  run.view.setUint32(run.offset, end - start, true);
  run.offset = end;
}

const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;
const uint64Max = 2n ** 64n - 1n;

/** Reads an integer. Returns undefined when a double represents it exactly; the value is then `scanner.value`. */
function readInteger(run: Run, signed: boolean): bigint | undefined {
  const { scanner } = run;
  const expected = signed ? "signed-integer" : "unsigned-integer";
  if (!isNumberStart(scanner.peek())) throw wrongType(expected, expected);
  const start = scanner.at;
  const kind: NumberKind = scanner.number();
  if (kind === "double") throw wrongType(expected, expected);
  if (kind === "safeInteger") {
    if (!signed && scanner.value < 0) throw wrongType(expected, expected);
    return undefined;
  }
  if (scanner.at - start > 20) throw wrongType(expected, expected);
  let text = "";
  for (let i = start; i < scanner.at; i++) text += String.fromCharCode(scanner.bytes[i]!);
  const value = BigInt(text);
  if (signed ? value < int64Min || value > int64Max : value < 0n || value > uint64Max)
    throw wrongType(expected, expected);
  return value;
}

function writeInt64(run: Run): void {
  const long = readInteger(run, true);
  if (long === undefined) writeSafe64(run);
  else run.view.setBigInt64(run.offset, long, true);
}

function writeUint64(run: Run): void {
  const long = readInteger(run, false);
  if (long === undefined) writeSafe64(run);
  else run.view.setBigUint64(run.offset, long, true);
}

function writeSafe64(run: Run): void {
  const { value } = run.scanner;
  run.view.setUint32(run.offset, value, true);
  run.view.setUint32(run.offset + 4, Math.floor(value / 2 ** 32), true);
}

function narrow(
  datatype: Datatype,
  min: number,
  max: number,
  set: (view: DataView, offset: number, value: number) => void,
): WriteElement {
  return (run) => {
    const long = readInteger(run, min < 0);
    const { value } = run.scanner;
    // tritonserver 2.51 silently truncates such a value: 300 for INT8 becomes 44.
    if (long !== undefined || value < min || value > max)
      throw new InferenceError("INVALID_ARG", `value ${long ?? value} is out of range for datatype ${datatype}`);
    set(run.view, run.offset, value);
  };
}

const elementRows: Readonly<
  Record<JsonDataTarget["datatype"], { readonly bytes: number; readonly write: WriteElement }>
> = {
  BOOL: { bytes: 1, write: writeBool },
  UINT8: { bytes: 1, write: narrow("UINT8", 0, 255, (view, at, value) => view.setUint8(at, value)) },
  UINT16: { bytes: 2, write: narrow("UINT16", 0, 65535, (view, at, value) => view.setUint16(at, value, true)) },
  UINT32: { bytes: 4, write: narrow("UINT32", 0, 2 ** 32 - 1, (view, at, value) => view.setUint32(at, value, true)) },
  UINT64: { bytes: 8, write: writeUint64 },
  INT8: { bytes: 1, write: narrow("INT8", -128, 127, (view, at, value) => view.setInt8(at, value)) },
  INT16: { bytes: 2, write: narrow("INT16", -32768, 32767, (view, at, value) => view.setInt16(at, value, true)) },
  INT32: {
    bytes: 4,
    write: narrow("INT32", -(2 ** 31), 2 ** 31 - 1, (view, at, value) => view.setInt32(at, value, true)),
  },
  INT64: { bytes: 8, write: writeInt64 },
  FP32: { bytes: 4, write: writeFloat32 },
  FP64: { bytes: 8, write: writeFloat64 },
  BYTES: { bytes: 0, write: writeString },
};
