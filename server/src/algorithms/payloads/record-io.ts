import type { ExampleFeatures } from "./feature-table.ts";
import { packedIntegers, protobufFields, type ProtobufField } from "./protobuf-reader.ts";

/** What stands before each record: MXNet's magic number, and its length. Records are padded to four bytes. */
const magic = 0xced7230a;
/** The first three bits of the length say that a record goes on in the next frame. */
const lengthMask = 0x1fffffff;

/** The records of a RecordIO stream. Throws RangeError where the bytes are none, or a record is cut into several frames. */
function* recordIoRecords(bytes: Uint8Array): Generator<Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  while (at < bytes.length) {
    if (bytes.length - at < 8) throw new RangeError("a record has no header");
    if (view.getUint32(at, true) !== magic) throw new RangeError(`there is no RecordIO header at byte ${at}`);
    const word = view.getUint32(at + 4, true);
    if (word !== (word & lengthMask)) throw new RangeError("records in several parts cannot be read");
    at += 8;
    if (bytes.length - at < word) throw new RangeError("a record is shorter than its header says");
    yield bytes.subarray(at, at + word);
    at += Math.ceil(word / 4) * 4;
  }
}

/** The features named `values` of the records of SageMaker's `application/x-recordio-protobuf`. */
export function recordIoExamples(bytes: Uint8Array): ExampleFeatures[] {
  const examples: ExampleFeatures[] = [];
  for (const record of recordIoRecords(bytes)) examples.push(featuresOf(record));
  if (examples.length === 0) throw new RangeError("there are no records");
  return examples;
}

/** `Record.features` is a map from names to values. */
function featuresOf(record: Uint8Array): ExampleFeatures {
  for (const field of protobufFields(record)) {
    if (field.number !== 1 || field.wireType !== 2) continue;
    let name = "";
    let value: Uint8Array | null = null;
    for (const entry of protobufFields(field.bytes)) {
      if (entry.number === 1) name = new TextDecoder().decode(entry.bytes);
      if (entry.number === 2) value = entry.bytes;
    }
    if (name === "values" && value !== null) return tensorOf(value);
  }
  throw new RangeError("a record has no features named 'values'");
}

/** Which field of `Value` holds which tensor. */
const tensorKinds = new Map([
  [2, "float32"],
  [3, "float64"],
  [7, "int32"],
] as const);
type TensorKind = "float32" | "float64" | "int32";

function tensorOf(value: Uint8Array): ExampleFeatures {
  for (const field of protobufFields(value)) {
    const kind = (tensorKinds as ReadonlyMap<number, TensorKind>).get(field.number);
    if (kind === undefined) throw new RangeError("features are neither float32, float64 nor int32");
    return tensorExample(field.bytes, kind);
  }
  throw new RangeError("a record's features are empty");
}

function tensorExample(tensor: Uint8Array, kind: TensorKind): ExampleFeatures {
  const values: number[] = [];
  const keys: number[] = [];
  const shape: number[] = [];
  for (const field of protobufFields(tensor)) {
    if (field.number === 1) pushValues(values, field, kind);
    if (field.number === 2) for (const { value } of packedIntegers(field)) keys.push(value);
    if (field.number === 3) for (const { value } of packedIntegers(field)) shape.push(value);
  }
  // A row of zeros has a shape and nothing else.
  if (keys.length === 0 && (values.length > 0 || shape.length === 0)) return { kind: "dense", values };
  return { kind: "sparse", values, keys, columnCount: shape.at(-1) ?? 0 };
}

function pushValues(values: number[], field: ProtobufField, kind: TensorKind): void {
  if (kind === "int32") {
    for (const { int32 } of packedIntegers(field)) values.push(int32);
    return;
  }
  const { bytes } = field;
  const elementBytes = kind === "float32" ? 4 : 8;
  if (bytes.length % elementBytes !== 0) throw new RangeError("a tensor ends within a number");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length; at += elementBytes) {
    values.push(kind === "float32" ? view.getFloat32(at, true) : view.getFloat64(at, true));
  }
}

/** The labels of an example in an answer: names and float32 numbers. */
export type RecordLabels = readonly (readonly [name: string, values: readonly number[]])[];

/** Records with labels alone, as the containers answer `application/x-recordio-protobuf`. */
export function recordIoLabels(examples: readonly RecordLabels[]): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const labels of examples) {
    const record = joined(labels.map(([name, values]) => lengthDelimited(2, mapEntry(name, values))));
    const header = new DataView(new ArrayBuffer(8));
    header.setUint32(0, magic, true);
    header.setUint32(4, record.length, true);
    parts.push(new Uint8Array(header.buffer), record, new Uint8Array(-record.length & 3));
  }
  return joined(parts);
}

function mapEntry(name: string, values: readonly number[]): Uint8Array {
  const packed = new DataView(new ArrayBuffer(4 * values.length));
  for (const [index, value] of values.entries()) packed.setFloat32(4 * index, value, true);
  const tensor = values.length === 0 ? new Uint8Array(0) : lengthDelimited(1, new Uint8Array(packed.buffer));
  const value = lengthDelimited(2, tensor);
  return joined([lengthDelimited(1, new TextEncoder().encode(name)), lengthDelimited(2, value)]);
}

/** Field numbers up to 15. */
function lengthDelimited(field: number, bytes: Uint8Array): Uint8Array {
  const head = [field * 8 + 2];
  let left = bytes.length;
  for (; left >= 128; left = Math.floor(left / 128)) head.push((left % 128) + 128);
  head.push(left);
  return joined([Uint8Array.from(head), bytes]);
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
