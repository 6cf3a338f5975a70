import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { readRecordIoHeader, recordIoFrame, recordIoHeaderBytes } from "@galatea/base";
import type { ExampleFeatures } from "./feature-table.ts";

/** Yields the records of a RecordIO stream. Throws RangeError for invalid bytes, and for a record that spans several frames. */
function* recordIoRecords(bytes: Uint8Array): Generator<Uint8Array> {
  let at = 0;
  while (at < bytes.length) {
    if (bytes.length - at < recordIoHeaderBytes) throw new RangeError("a record has no header");
    const header = readRecordIoHeader(bytes, at);
    if (header === null) throw new RangeError(`there is no RecordIO header at byte ${at}`);
    if (header.part !== "whole") throw new RangeError("records in several parts are not supported");
    const from = at + recordIoHeaderBytes;
    if (bytes.length - from < header.contentBytes) throw new RangeError("a record is shorter than its header declares");
    yield bytes.subarray(from, from + header.contentBytes);
    at += header.frameBytes;
  }
}

/**
 * Reads the feature `values` of each record of a body of type `application/x-recordio-protobuf`. Throws RangeError if a record has no such
 * feature, or the body has no records.
 */
export function recordIoExamples(bytes: Uint8Array): ExampleFeatures[] {
  const examples: ExampleFeatures[] = [];
  try {
    for (const record of recordIoRecords(bytes)) examples.push(featuresOf(record));
  } catch (error) {
    // The protobuf reader throws Errors of several classes for an invalid message.
    throw error instanceof RangeError ? error : new RangeError((error as Error).message);
  }
  if (examples.length === 0) throw new RangeError("there are no records");
  return examples;
}

interface Field {
  readonly number: number;
  readonly wireType: WireType;
  /** Positioned at the field's value. */
  readonly reader: BinaryReader;
}

/** Yields the fields of a message; skips the value of a field that the caller does not read. */
function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const { pos } = reader;
    yield { number, wireType, reader };
    if (reader.pos === pos) reader.skip(wireType, number);
  }
}

function bytesOf({ wireType, reader }: Field): Uint8Array {
  if (wireType !== WireType.LengthDelimited) throw new RangeError(`a field has wire type ${wireType} in place of 2`);
  return reader.bytes();
}

/** Reads the values of a repeated field: one value, or all of them if they are packed. */
function repeated(field: Field, of: WireType, read: (reader: BinaryReader) => number): number[] {
  if (field.wireType === of) return [read(field.reader)];
  const packed = new BinaryReader(bytesOf(field));
  const values: number[] = [];
  while (packed.pos < packed.len) values.push(read(packed));
  return values;
}

/** Reads `Record.features`, a map from names to values. */
function featuresOf(record: Uint8Array): ExampleFeatures {
  for (const field of fieldsOf(record)) {
    if (field.number !== 1) continue;
    let name = "";
    let value: Uint8Array | null = null;
    for (const entry of fieldsOf(bytesOf(field))) {
      if (entry.number === 1) name = new TextDecoder().decode(bytesOf(entry));
      if (entry.number === 2) value = bytesOf(entry);
    }
    if (name === "values" && value !== null) return tensorOf(value);
  }
  throw new RangeError("a record has no features named 'values'");
}

type ReadValues = (field: Field) => number[];

/** Functions that read a tensor's values, by the number of the field of `Value` that has the tensor. */
const tensorValues: ReadonlyMap<number, ReadValues> = new Map<number, ReadValues>([
  [2, (field) => repeated(field, WireType.Bit32, (reader) => reader.float())],
  [3, (field) => repeated(field, WireType.Bit64, (reader) => reader.double())],
  [7, (field) => repeated(field, WireType.Varint, (reader) => reader.int32())],
]);

function tensorOf(value: Uint8Array): ExampleFeatures {
  for (const field of fieldsOf(value)) {
    const read = tensorValues.get(field.number);
    if (read === undefined) throw new RangeError("features are neither float32, float64 nor int32");
    return tensorExample(bytesOf(field), read);
  }
  throw new RangeError("a record's features are empty");
}

function tensorExample(tensor: Uint8Array, read: ReadValues): ExampleFeatures {
  const values: number[] = [];
  const keys: number[] = [];
  const shape: number[] = [];
  const unsigned = (field: Field) => repeated(field, WireType.Varint, (reader) => Number(reader.uint64()));
  for (const field of fieldsOf(tensor)) {
    if (field.number === 1) for (const value of read(field)) values.push(value);
    if (field.number === 2) for (const key of unsigned(field)) keys.push(key);
    if (field.number === 3) for (const dimension of unsigned(field)) shape.push(dimension);
  }
  // A sparse row of zeros has a shape, but neither keys nor values.
  if (keys.length === 0 && (values.length > 0 || shape.length === 0)) return { kind: "dense", values };
  return { kind: "sparse", values, keys, columnCount: shape.at(-1) ?? 0 };
}

/** The labels of an example in a response: names and float32 numbers. */
export type RecordLabels = readonly (readonly [name: string, values: readonly number[]])[];

/** Encodes records that have labels but no features, as SageMaker's containers return them for `application/x-recordio-protobuf`. */
export function recordIoLabels(examples: readonly RecordLabels[]): Uint8Array {
  return Buffer.concat(examples.map((labels) => recordIoFrame(recordOf(labels))));
}

function recordOf(labels: RecordLabels): Uint8Array {
  const writer = new BinaryWriter();
  const fork = (field: number) => writer.tag(field, WireType.LengthDelimited).fork();
  for (const [name, values] of labels) {
    fork(2).tag(1, WireType.LengthDelimited).string(name);
    fork(2);
    fork(2);
    if (values.length > 0) {
      fork(1);
      for (const value of values) writer.float(Math.fround(value));
      writer.join();
    }
    writer.join().join().join();
  }
  return writer.finish();
}
