import { InferenceError, type ByteLease } from "@galatea/base";
import type { ParameterValue, SequenceFlags } from "../../inference/index.ts";
import { datatypes, isDatatype, type Datatype, type JsonScanner } from "../../tensor/index.ts";
import { scanDocument, type DocumentSpans, type InputSpans, type OutputSpans } from "./document-spans.ts";
import {
  bigintAt,
  booleanAt,
  countVisited,
  eachMember,
  missingMemberError,
  parsingRequestJson,
  stringAt,
  memberError,
  unsignedAt,
} from "./json-access.ts";
import { readRequestParameters } from "./request-parameters.ts";

/** One input of the JSON header. Its elements are JSON at `[dataAt, dataEnd)`, or `binaryBytes` of the binary data after the header. */
export interface InputHeader {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly number[];
  readonly elementCount: number;
  /** Offset of the JSON elements; -1 for binary elements. */
  readonly dataAt: number;
  readonly dataEnd: number;
  /** True if the JSON is a single element, not an array. */
  readonly isElement: boolean;
  readonly binaryBytes: number;
}

export interface RequestedOutput {
  readonly name: string;
  readonly binary: boolean;
  /** Number of classes to return instead of the tensor (classification extension); 0 to return the tensor. */
  readonly classCount: number;
}

/** The checked JSON part of an inference request. The elements of its inputs are not read yet. */
export interface InferHeader {
  readonly scanner: JsonScanner;
  readonly id: string;
  readonly parameters: ReadonlyMap<string, ParameterValue>;
  readonly sequence: SequenceFlags | null;
  readonly priority: number;
  readonly queueTimeoutUs: number;
  readonly inputs: readonly InputHeader[];
  /** The requested outputs, each with its own format. Null selects all outputs, in the format of `binaryOutputs`. */
  readonly outputs: readonly RequestedOutput[] | null;
  readonly binaryOutputs: boolean;
  /** Bytes that parsing this header has charged to the memory lease; 0 for a small header. */
  readonly memoryBytes: number;
}

/** Headers up to this size are not charged to the memory lease, because parsing them needs no more memory than any request needs. */
const uncountedBytesMax = 16 * 1024;
/** Bytes of parsed objects for each byte of text, in the worst case. */
const parsedBytesPerByte = 12;

/**
 * Reads the document at the scanner's position. `inputBytesMax` limits each JSON tensor (--http-max-input-size). The parsed form of a long
 * header is charged to `memory`.
 */
export function parseInferHeader(scanner: JsonScanner, inputBytesMax: number, memory: ByteLease): InferHeader {
  const spans = parsingRequestJson(() => scanDocument(scanner));
  const memoryBytes = parsedBytes(scanner.bytes.length, spans);
  if (memoryBytes > 0) memory.grow(memoryBytes);
  const id = spans.idAt === -1 ? "" : stringAt(scanner, spans.idAt, (text) => memberError("id", text));
  const { parameters, sequence, priority, queueTimeoutUs, binaryOutputs } = readRequestParameters(
    scanner,
    spans.parametersAt,
  );
  if (spans.inputs === undefined) throw missingMemberError("inputs");
  if (spans.inputs === null) throw memberError("inputs", "attempt to access JSON non-array as array");
  const inputs = spans.inputs.map((input) => readInput(scanner, input, inputBytesMax));
  if (spans.outputs === null) throw memberError("outputs", "attempt to access JSON non-array as array");
  const outputs =
    spans.outputs === undefined || spans.outputs.length === 0 ? null : readOutputs(scanner, spans.outputs);
  return { scanner, id, parameters, sequence, priority, queueTimeoutUs, inputs, outputs, binaryOutputs, memoryBytes };
}

/** Returns the estimated size of a parsed header, without the elements of tensors, which the arena accounts for. */
function parsedBytes(textBytes: number, { inputs }: DocumentSpans): number {
  let bytes = textBytes;
  for (const { dataAt, dataEnd } of inputs ?? []) bytes -= dataEnd - dataAt;
  return estimateParsedBytes(bytes);
}

/** Returns the estimated size of a parsed JSON text without tensors. */
export function estimateParsedBytes(textBytes: number): number {
  return textBytes <= uncountedBytesMax ? 0 : textBytes * parsedBytesPerByte;
}

function readInput(scanner: JsonScanner, spans: InputSpans, inputBytesMax: number): InputHeader {
  const { binarySizeAt, regionAt } = inputSources(scanner, spans);
  if (spans.nameAt === -1) throw missingMemberError("name");
  const name = stringAt(scanner, spans.nameAt, (text) => memberError("name", text));
  const shape = readShape(scanner, spans.shapeAt);
  const count = checkedCount(name, shape, () => shapeText(scanner, spans.shapeAt));
  if (spans.datatypeAt === -1) throw missingMemberError("datatype");
  const datatype = stringAt(scanner, spans.datatypeAt, (text) => memberError("datatype", text));
  if (!isDatatype(datatype)) throw new InferenceError("INVALID_ARG", `invalid datatype for input ${name}`);
  if (regionAt !== -1) throw unknownRegion(scanner, regionAt);
  if (binarySizeAt !== -1) {
    const binaryBytes = unsignedAt(scanner, binarySizeAt, (text) => memberError("binary_data_size", text));
    return { name, datatype, shape, elementCount: count, dataAt: -1, dataEnd: -1, isElement: false, binaryBytes };
  }
  rejectHalfFloats(name, datatype);
  const byteSize = datatype === "BYTES" ? spans.dataEnd - spans.dataAt : count * datatypes[datatype].byteSize;
  if (byteSize > inputBytesMax) {
    throw new InferenceError(
      "INVALID_ARG",
      `JSON input '${name}' has a byte_size (${byteSize} bytes) that exceeds the maximum allowed value of ${inputBytesMax} bytes. Use --http-max-input-size to increase the limit.`,
    );
  }
  const { dataAt, dataEnd } = spans;
  return { name, datatype, shape, elementCount: count, dataAt, dataEnd, isElement: false, binaryBytes: 0 };
}

/** Rejects FP16 and BF16 tensors whose elements are JSON, which the KServe protocol does not define. */
export function rejectHalfFloats(name: string, datatype: Datatype): void {
  if (datatype !== "FP16" && datatype !== "BF16") return;
  throw new InferenceError(
    "INVALID_ARG",
    `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input ${name}`,
  );
}

/** Checks that an input has exactly one source of elements. As in Triton, this check precedes reading the input's name. */
function inputSources(scanner: JsonScanner, spans: InputSpans): { binarySizeAt: number; regionAt: number } {
  let binarySizeAt = -1;
  let regionAt = -1;
  if (spans.parametersAt !== -1 && scanner.bytes[spans.parametersAt] === 0x7b) {
    eachMember(scanner, spans.parametersAt, (name, at) => {
      if (name === "binary_data_size") binarySizeAt = at;
      else if (name === "shared_memory_region") regionAt = at;
    });
  }
  const count = Number(spans.dataAt !== -1) + Number(binarySizeAt !== -1) + Number(regionAt !== -1);
  if (count !== 1) throw wrongSources(spans.dataAt, binarySizeAt, regionAt);
  return { binarySizeAt, regionAt };
}

function wrongSources(dataAt: number, binarySizeAt: number, regionAt: number): InferenceError {
  const set = [
    ...(dataAt === -1 ? [] : ["'data'"]),
    ...(binarySizeAt === -1 ? [] : ["'binary_data_size'"]),
    ...(regionAt === -1 ? [] : ["'shared_memory_region'"]),
  ];
  return new InferenceError(
    "INVALID_ARG",
    `Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But ${set.length === 0 ? "no field is set" : `set ${set.join(" ")}`}`,
  );
}

/** Returns Triton's error for an unknown shared memory region. Regions cannot be registered yet, so every name is unknown. */
function unknownRegion(scanner: JsonScanner, at: number): InferenceError {
  const region = stringAt(scanner, at, (text) => memberError("shared_memory_region", text));
  return new InferenceError("NOT_FOUND", `Unable to find shared memory region: '${region}'`);
}

function readShape(scanner: JsonScanner, at: number): number[] {
  if (at === -1) throw missingMemberError("shape");
  scanner.at = at;
  const fail = (text: string) => memberError("shape", text);
  if (scanner.kind() !== "array") throw fail("attempt to access JSON non-array as array");
  const shape: number[] = [];
  if (!scanner.open(0x5d)) return shape;
  do {
    countVisited(scanner);
    scanner.peek();
    shape.push(unsignedAt(scanner, scanner.at, fail));
  } while (scanner.more(0x5d));
  return shape;
}

/** Returns the text of a shape in a request. Dimensions may be integers of any size. */
function shapeText(scanner: JsonScanner, at: number): string {
  const dimensions: bigint[] = [];
  scanner.at = at;
  scanner.open(0x5d);
  do {
    scanner.peek();
    dimensions.push(bigintAt(scanner, scanner.at));
  } while (scanner.more(0x5d));
  return dimensions.join(",");
}

function checkedCount(name: string, shape: readonly number[], text: () => string): number {
  let count = 1;
  for (const dimension of shape) count *= dimension;
  if (Number.isSafeInteger(count) && shape.every(Number.isSafeInteger)) return count;
  throw new InferenceError(
    "INVALID_ARG",
    `invalid shape for input '${name}': shape [${text()}] causes total element count to exceed maximum size of 9223372036854775807`,
  );
}

/** Reads the listed outputs. The request's `binary_data_output` does not apply to them, because each has its own setting. */
function readOutputs(scanner: JsonScanner, list: readonly OutputSpans[]): RequestedOutput[] {
  const outputs = new Map<string, RequestedOutput>();
  for (const spans of list) {
    if (spans.nameAt === -1) throw missingMemberError("name");
    const name = stringAt(scanner, spans.nameAt, (text) => memberError("name", text));
    const requestedOutput = { name, ...readOutputParameters(scanner, spans.parametersAt) };
    if (!outputs.has(name)) outputs.set(name, requestedOutput);
  }
  return [...outputs.values()];
}

function readOutputParameters(scanner: JsonScanner, at: number): { binary: boolean; classCount: number } {
  let binaryAt = -1;
  let classAt = -1;
  let regionAt = -1;
  if (at !== -1 && scanner.bytes[at] === 0x7b) {
    eachMember(scanner, at, (name, valueAt) => {
      if (name === "binary_data") binaryAt = valueAt;
      else if (name === "classification") classAt = valueAt;
      else if (name === "shared_memory_region") regionAt = valueAt;
    });
  }
  const classCount =
    classAt === -1
      ? 0
      : unsignedAt(
          scanner,
          classAt,
          (text) => new InferenceError("INTERNAL", `Unable to set 'classification': ${text}`),
        );
  const binary = binaryAt !== -1 && booleanAt(scanner, binaryAt, (text) => memberError("binary_data", text));
  if (regionAt !== -1) {
    if (classAt !== -1) throw conflict("classification");
    if (binaryAt !== -1 && binary) throw conflict("binary_data");
    throw unknownRegion(scanner, regionAt);
  }
  return { binary, classCount };
}

function conflict(other: string): InferenceError {
  return new InferenceError("INVALID_ARG", `Output can't set both 'shared_memory_region' and '${other}'`);
}
