import { datatypes, type Datatype } from "../../tensor/index.ts";
import { malformedMessageError, ProtobufReader, wireTypes } from "./protobuf-reader.ts";
import type { Span } from "./infer-message.ts";

/** The element type of a field of InferTensorContents. Narrow integers use the field of a wider type. */
type Kind = "bool" | "int32" | "int64" | "uint32" | "uint64" | "fp32" | "fp64" | "bytes";

interface ContentsField {
  readonly kind: Kind;
  /** The datatype that Triton's error expects when the tensor has a datatype that the field does not accept. */
  readonly datatype: Datatype;
  readonly accepts: readonly Datatype[];
  /** Size of a packed element in bytes; 0 for varints and strings, whose size varies. */
  readonly wireBytes: 0 | 4 | 8;
}

/** The fields of InferTensorContents, by number. */
const contentsFields: ReadonlyMap<number, ContentsField> = new Map([
  [1, { kind: "bool", datatype: "BOOL", accepts: ["BOOL"], wireBytes: 0 }],
  [2, { kind: "int32", datatype: "INT32", accepts: ["INT8", "INT16", "INT32"], wireBytes: 0 }],
  [3, { kind: "int64", datatype: "INT64", accepts: ["INT64"], wireBytes: 0 }],
  [4, { kind: "uint32", datatype: "UINT32", accepts: ["UINT8", "UINT16", "UINT32"], wireBytes: 0 }],
  [5, { kind: "uint64", datatype: "UINT64", accepts: ["UINT64"], wireBytes: 0 }],
  [6, { kind: "fp32", datatype: "FP32", accepts: ["FP32"], wireBytes: 4 }],
  [7, { kind: "fp64", datatype: "FP64", accepts: ["FP64"], wireBytes: 8 }],
  [8, { kind: "bytes", datatype: "BYTES", accepts: ["BYTES"], wireBytes: 0 }],
]);

/** The elements of one field of `contents`. They stay in the message until `fillTyped` decodes them. */
export interface TypedContents {
  readonly number: number;
  readonly field: ContentsField;
  readonly spans: readonly Span[];
  elementCount: number;
  /** Size of the BYTES tensor: all elements with their length fields. */
  textBytes: number;
}

/** Bytes that are processed between two event loop ticks, which takes some tenths of a millisecond. */
const chunkBytes = 32 * 1024;
/** Estimated time to read a value that is not packed, as the number of bytes of packed values that take the same time. */
const valueBytes = 16;

/**
 * Returns the fields of `contents` that have elements, sorted by field number. Creates no objects for individual elements. Yields after
 * each chunk of a long field.
 */
export function* findContents(spans: readonly Span[]): Generator<void, TypedContents[]> {
  const found = new Map<number, TypedContents>();
  yield* eachField(spans, (number, field, reader, end) => {
    let contents = found.get(number);
    if (contents === undefined) {
      contents = { number, field, spans, elementCount: 0, textBytes: 0 };
      found.set(number, contents);
    }
    if (field.kind === "bytes") contents.textBytes += 4 + end - reader.at;
    contents.elementCount += reader.wireType === wireTypes.delimited ? countOf(field, reader, end) : 1;
    reader.at = end;
  });
  return [...found.values()].filter(({ elementCount }) => elementCount > 0).sort((a, b) => a.number - b.number);
}

/** A function that reads elements from the reader's position up to the end of the element that contains `end`. */
type VisitField = (number: number, field: ContentsField, reader: ProtobufReader, end: number) => void;

/** Calls `visit` for each value of a known field; a long packed field is visited in chunks. Yields after each chunk. */
function* eachField(spans: readonly Span[], visit: VisitField): Generator<void, void> {
  let done = 0;
  for (const { bytes, at, end } of spans) {
    const reader = new ProtobufReader(bytes, at, end);
    while (reader.next()) {
      const { field: number } = reader;
      const field = contentsFields.get(number);
      if (field === undefined) {
        reader.skip();
        continue;
      }
      const isDelimited = reader.wireType === wireTypes.delimited;
      if (!isDelimited) reader.expect(wireTypeOf(field));
      const valueEnd = isDelimited ? reader.delimited() : endOfValue(reader);
      const isDivisible = field.kind !== "bytes" && field.wireBytes === 0;
      if (isDivisible && valueEnd > reader.at && bytes[valueEnd - 1]! >= 0x80)
        throw malformedMessageError("a packed field is cut off");
      do {
        const from = reader.at;
        visit(number, field, reader, isDivisible ? Math.min(valueEnd, from + chunkBytes) : valueEnd);
        done += reader.at - from + valueBytes;
        if (done < chunkBytes) continue;
        done = 0;
        yield;
      } while (reader.at < valueEnd);
    }
  }
}

function endOfValue(reader: ProtobufReader): number {
  const start = reader.at;
  reader.skip();
  const end = reader.at;
  reader.at = start;
  return end;
}

function wireTypeOf({ kind, wireBytes }: ContentsField): number {
  if (kind === "bytes") return wireTypes.delimited;
  if (wireBytes === 0) return wireTypes.varint;
  return wireBytes === 4 ? wireTypes.fixed32 : wireTypes.fixed64;
}

/** Returns the number of elements of a packed field; a string is one element. */
function countOf({ kind, wireBytes }: ContentsField, { bytes, at }: ProtobufReader, end: number): number {
  if (kind === "bytes") return 1;
  if (wireBytes > 0) {
    if ((end - at) % wireBytes !== 0) throw malformedMessageError("a packed field is cut off");
    return (end - at) / wireBytes;
  }
  let count = 0;
  for (let index = at; index < end; index++) if (bytes[index]! < 0x80) count++;
  return count;
}

export function acceptsDatatype(contents: TypedContents, datatype: Datatype): boolean {
  return contents.field.accepts.includes(datatype);
}

/** Returns the size of the tensor that `fillTyped` writes. The field must accept the datatype. */
export function typedByteLength(contents: TypedContents, datatype: Datatype): number {
  return contents.field.kind === "bytes" ? contents.textBytes : contents.elementCount * datatypes[datatype].byteSize;
}

/** Writes the elements as tensor data: little-endian, packed, narrow integers truncated. Yields after each chunk of a long field. */
export function* fillTyped(contents: TypedContents, datatype: Datatype, into: Uint8Array): Generator<void, void> {
  const write = writers[datatype];
  const view = new DataView(into.buffer, into.byteOffset, into.byteLength);
  let at = 0;
  yield* eachField(contents.spans, (number, field, reader, end) => {
    if (number !== contents.number) {
      reader.at = end;
      return;
    }
    if (field.kind === "bytes") {
      view.setUint32(at, end - reader.at, true);
      at += 4;
    }
    if (field.kind === "bytes" || field.wireBytes > 0) {
      into.set(reader.bytes.subarray(reader.at, end), at);
      at += end - reader.at;
      reader.at = end;
    } else while (reader.at < end) at = write(view, at, reader);
  });
}

type Write = (view: DataView, at: number, reader: ProtobufReader) => number;

const wide: Write = (view, at, reader) => {
  reader.readVarint();
  view.setUint32(at, reader.low, true);
  view.setUint32(at + 4, reader.high, true);
  return at + 8;
};
const word: Write = (view, at, reader) => {
  view.setUint32(at, reader.uint32(), true);
  return at + 4;
};
const half: Write = (view, at, reader) => {
  view.setUint16(at, reader.uint32() & 0xffff, true);
  return at + 2;
};
const byte: Write = (view, at, reader) => {
  view.setUint8(at, reader.uint32() & 0xff);
  return at + 1;
};
const never: Write = () => {
  throw new Error("bug: elements of this datatype are not encoded as varints");
};

const writers: Readonly<Record<Datatype, Write>> = {
  BOOL: (view, at, reader) => {
    view.setUint8(at, reader.bool() ? 1 : 0);
    return at + 1;
  },
  INT8: byte,
  UINT8: byte,
  INT16: half,
  UINT16: half,
  INT32: word,
  UINT32: word,
  INT64: wide,
  UINT64: wide,
  FP16: never,
  BF16: never,
  FP32: never,
  FP64: never,
  BYTES: never,
};
