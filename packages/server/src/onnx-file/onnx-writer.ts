/**
 * Writes ONNX files: the protobuf messages of onnx.proto that a graph of constants and operators needs. A message is a list of byte chunks,
 * so that 90 MB of weights are never copied in memory, and larger weights can be streamed.
 */
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { assert } from "@galatea/base";
import { isStreamed, writeOnnxChunks, type OnnxChunk, type StreamedBytes } from "./chunks.ts";

/** The chunks of an encoded message in order, and their total length. */
interface Encoded {
  readonly pieces: readonly OnnxChunk[];
  readonly byteLength: number;
}

/** The numbers of onnx.TensorProto.DataType. */
export const onnxTypes = {
  FLOAT: 1,
  UINT8: 2,
  INT8: 3,
  UINT16: 4,
  INT16: 5,
  INT32: 6,
  INT64: 7,
  STRING: 8,
  BOOL: 9,
  FLOAT16: 10,
  DOUBLE: 11,
  UINT32: 12,
  UINT64: 13,
  BFLOAT16: 16,
} as const;
export type OnnxType = keyof typeof onnxTypes;

export interface Constant {
  readonly name: string;
  readonly type: OnnxType;
  readonly dims: readonly number[];
  /** Little-endian, row-major. The bytes must not change until the file is written. */
  readonly bytes: Uint8Array | StreamedBytes | ExternalBytes;
}

/** Bytes in a separate file next to the model file. */
export interface ExternalBytes {
  /** Name of that file. */
  readonly location: string;
  readonly offset: number;
  readonly byteLength: number;
}

export interface Operator {
  readonly operator: string;
  /** Operator domain: "" for ONNX's own operators, "com.microsoft" for the fused operators of ONNX Runtime. */
  readonly domain: string;
  /** Names of the input tensors; "" omits an optional input. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, OnnxAttribute>>;
}

/**
 * An attribute's value: bigint for INT, number for FLOAT, string for STRING, a typed array for a list, a graph for the body of a loop or
 * branch.
 */
export type OnnxAttribute = bigint | number | string | Float32Array | Int32Array | RepeatedValues | OnnxGraph;

/** A list of strings with many duplicates: element i is `words[places[i]]`. The words are ASCII and shorter than 128 bytes. */
export interface RepeatedValues {
  readonly words: readonly string[];
  readonly places: Uint8Array;
}

export interface GraphTensor {
  readonly name: string;
  readonly type: OnnxType;
  /** A number is a fixed dimension, a string the name of a symbolic one. */
  readonly dims: readonly (number | string)[];
}

export interface OnnxGraph {
  readonly graphName: string;
  readonly inputs: readonly GraphTensor[];
  readonly outputs: readonly GraphTensor[];
  readonly constants: readonly Constant[];
  readonly operators: readonly Operator[];
}

export interface OnnxModel extends OnnxGraph {
  readonly opsets: Readonly<Record<string, number>>;
}

/** Writes `model` to `path`, replacing an existing file. The file is complete when this resolves. */
export async function writeOnnxFile(path: string, model: OnnxModel, signal: AbortSignal | null = null): Promise<void> {
  await writeOnnxChunks(path, encodeModel(model).pieces, signal);
}

/** Returns the file as one buffer, for small models. */
export function encodeOnnx(model: OnnxModel): Buffer {
  return Buffer.concat(encodeModel(model).pieces.map(inMemory));
}

/** Returns the size of the file that `writeOnnxFile` would write. */
export function onnxByteLength(model: OnnxModel): number {
  return encodeModel(model).byteLength;
}

function inMemory(chunk: OnnxChunk): Uint8Array {
  assert(!isStreamed(chunk), "a model in memory has its constants in memory");
  return chunk;
}

function encodeGraph(model: OnnxGraph): Encoded {
  return message([
    ...model.operators.map((operator, index) => nested(1, encodeOperator(operator, index))),
    text(2, model.graphName),
    ...model.constants.map((constant) => nested(5, encodeConstant(constant))),
    ...model.inputs.map((input) => nested(11, encodeGraphTensor(input))),
    ...model.outputs.map((output) => nested(12, encodeGraphTensor(output))),
  ]);
}

function encodeModel(model: OnnxModel): Encoded {
  const opsets = Object.entries(model.opsets).map(([domain, version]) =>
    nested(8, message([text(1, domain), integer(2, BigInt(version))])),
  );
  return message([
    integer(1, irVersionOf(model.opsets[""] ?? 1)),
    text(2, "galatea"),
    nested(7, encodeGraph(model)),
    ...opsets,
  ]);
}

/** Returns the IR version that was released with the opset, at least 8 (that of opset 17), so that old runtimes can read the file. */
function irVersionOf(opset: number): bigint {
  if (opset >= 21) return 10n;
  return opset >= 19 ? 9n : 8n;
}

function encodeOperator(operator: Operator, index: number): Encoded {
  return message([
    ...operator.inputs.map((name) => text(1, name)),
    ...operator.outputs.map((name) => text(2, name)),
    text(3, `${operator.operator}_${index}`),
    text(4, operator.operator),
    ...Object.entries(operator.attributes).map(([name, value]) => nested(5, encodeAttribute(name, value))),
    text(7, operator.domain),
  ]);
}

function encodeAttribute(name: string, value: OnnxAttribute): Encoded {
  if (typeof value === "bigint") return message([text(1, name), integer(3, value), integer(20, 2n)]);
  if (typeof value === "number") return message([text(1, name), float(2, value), integer(20, 1n)]);
  if (typeof value === "string") return message([text(1, name), text(4, value), integer(20, 3n)]);
  if (value instanceof Float32Array) return message([text(1, name), packedFloats(7, value), integer(20, 6n)]);
  if (value instanceof Int32Array) return message([text(1, name), packedIntegers(8, value), integer(20, 7n)]);
  if ("words" in value) return message([text(1, name), repeatedWords(9, value), integer(20, 8n)]);
  return message([text(1, name), nested(6, encodeGraph(value)), integer(20, 5n)]);
}

function encodeConstant(constant: Constant): Encoded {
  return message([
    ...constant.dims.map((dim) => integer(1, BigInt(dim))),
    integer(2, BigInt(onnxTypes[constant.type])),
    text(8, constant.name),
    ...("location" in constant.bytes
      ? encodeExternal(constant.bytes)
      : [nested(9, { pieces: [constant.bytes], byteLength: constant.bytes.byteLength })]),
  ]);
}

function encodeExternal({ location, offset, byteLength }: ExternalBytes): readonly Encoded[] {
  const entries = { location, offset: `${offset}`, length: `${byteLength}` };
  const encoded = Object.entries(entries).map(([key, value]) => nested(13, message([text(1, key), text(2, value)])));
  return [...encoded, integer(14, 1n)];
}

function encodeGraphTensor(tensor: GraphTensor): Encoded {
  const dims = tensor.dims.map((dim) => nested(1, typeof dim === "number" ? integer(1, BigInt(dim)) : text(2, dim)));
  const tensorType = message([integer(1, BigInt(onnxTypes[tensor.type])), nested(2, message(dims))]);
  return message([text(1, tensor.name), nested(2, nested(1, tensorType))]);
}

function message(fields: readonly Encoded[]): Encoded {
  return {
    pieces: fields.flatMap((field) => field.pieces),
    byteLength: fields.reduce((sum, field) => sum + field.byteLength, 0),
  };
}

/** Encodes a field that contains a message or bytes. `content` is borrowed. */
function nested(field: number, content: Encoded): Encoded {
  const head = new BinaryWriter().tag(field, WireType.LengthDelimited).uint32(content.byteLength).finish();
  return { pieces: [head, ...content.pieces], byteLength: head.byteLength + content.byteLength };
}

function written(writer: BinaryWriter): Encoded {
  const bytes = writer.finish();
  return { pieces: [bytes], byteLength: bytes.byteLength };
}

const text = (field: number, value: string) =>
  written(new BinaryWriter().tag(field, WireType.LengthDelimited).string(value));

const integer = (field: number, value: bigint) => written(new BinaryWriter().tag(field, WireType.Varint).int64(value));

const float = (field: number, value: number) =>
  written(new BinaryWriter().tag(field, WireType.Bit32).float(Math.fround(value)));

/** Encodes a list of floats from the memory of the array, which is borrowed: machine and file format are both little-endian. */
function packedFloats(field: number, values: Float32Array): Encoded {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  return nested(field, { pieces: [bytes], byteLength: bytes.byteLength });
}

/** Encodes a list of non-negative integers. */
function packedIntegers(field: number, values: Int32Array): Encoded {
  const writer = new BinaryWriter().tag(field, WireType.LengthDelimited).fork();
  for (const value of values) writer.uint32(value);
  return written(writer.join());
}

function repeatedWords(field: number, { words, places }: RepeatedValues): Encoded {
  const encoded = words.map((word) => new BinaryWriter().tag(field, WireType.LengthDelimited).string(word).finish());
  const writer = new BinaryWriter();
  for (const position of places) writer.raw(encoded[position] as Uint8Array);
  return written(writer);
}
