import { InferenceError, type ByteLease } from "../../base/index.ts";
import {
  jsonBytesLengthMax,
  jsonElementsMax,
  readJsonData,
  readJsonElement,
  releaseTensors,
  type Arena,
  type Datatype,
  type IntegerRange,
  type Tensor,
} from "../../tensor/index.ts";
import { unableToParse } from "./json-access.ts";
import type { InferHeader, InputHeader } from "./infer-header.ts";

/** Tensors start on cache lines: native libraries and numpy like their buffers aligned, and the client's JSON has any length. */
const alignmentBytes = 64;

export interface PlaceOptions {
  readonly modelName: string;
  /** Bytes behind the JSON header. */
  readonly tailBytes: number;
  /** Where tensors go; null for plain memory. */
  readonly arena: Arena | null;
  readonly integerRange: IntegerRange;
  /** Of the request; plain memory is taken from it. */
  readonly memory: ByteLease;
}

/** Inputs, and the text that the JSON ones are in. */
export type PlacedHeader = Pick<InferHeader, "scanner" | "inputs">;

/** The request's tensors, JSON ones filled; the tail's bytes are still to be written through `tail`. */
export interface PlacedInputs {
  readonly tensors: readonly Tensor[];
  readonly tail: TailWriter;
}

/**
 * Allocates one block for all tensors of a request, a part of it for each, and reads the JSON ones into them. The caller owns the tensors.
 * Throws with nothing allocated. With plain memory as target a whole tail can be handed over without a copy: see `viewTail`.
 */
export function placeInputs(header: PlacedHeader, options: PlaceOptions): PlacedInputs {
  checkTail(header.inputs, options);
  const capacities = header.inputs.map((input) => capacityBytes(input));
  let totalBytes = 0;
  for (const capacity of capacities) totalBytes += aligned(capacity);
  const block = options.arena !== null && totalBytes > 0 ? options.arena.allocate(totalBytes) : null;
  if (options.arena === null) options.memory.grow(totalBytes);
  const bytes = block === null ? new Uint8Array(totalBytes) : block.bytes;
  const isOnly = header.inputs.length === 1;
  const tensors: Tensor[] = [];
  try {
    const segments: Uint8Array[] = [];
    let offset = 0;
    for (const [index, input] of header.inputs.entries()) {
      const start = offset;
      const place = bytes.subarray(offset, offset + capacities[index]!);
      offset += aligned(capacities[index]!);
      let data = place;
      if (input.dataAt === -1) segments.push(place);
      else data = place.subarray(0, fillFromJson(header, input, place, options.integerRange));
      const own = block === null || isOnly ? block : block.part(start, place.byteLength);
      tensors.push({ name: input.name, datatype: input.datatype, shape: input.shape, data, block: own });
    }
    // The parts hold the block from here on.
    if (!isOnly) block?.release();
    return { tensors, tail: new TailWriter(segments) };
  } catch (error) {
    if (!isOnly) releaseTensors(tensors);
    block?.release();
    throw error;
  }
}

/** The binary inputs as views of a tail that is in memory already, where tensors need not be in shared memory. */
export function viewTail(header: InferHeader, tail: Uint8Array, options: PlaceOptions): Tensor[] {
  checkTail(header.inputs, options);
  let at = 0;
  return header.inputs.map((input) => {
    const { name, datatype, shape } = input;
    if (input.dataAt === -1) {
      const data = tail.subarray(at, at + input.binaryBytes);
      at += input.binaryBytes;
      return { name, datatype, shape, data, block: null };
    }
    const capacity = capacityBytes(input);
    options.memory.grow(capacity);
    const place = new Uint8Array(capacity);
    const data = place.subarray(0, fillFromJson(header, input, place, options.integerRange));
    return { name, datatype, shape, data, block: null };
  });
}

function aligned(byteLength: number): number {
  return Math.ceil(byteLength / alignmentBytes) * alignmentBytes;
}

function checkTail(inputs: readonly InputHeader[], options: PlaceOptions): void {
  let left = options.tailBytes;
  for (const input of inputs) {
    if (input.binaryBytes > left) {
      throw new InferenceError(
        "INVALID_ARG",
        `unexpected size for input '${input.name}', expecting ${input.binaryBytes - left} additional bytes for model '${options.modelName}'`,
      );
    }
    left -= input.binaryBytes;
  }
  if (left > 0) {
    throw new InferenceError("INVALID_ARG", `unexpected additional input data for model '${options.modelName}'`);
  }
}

/** JSON cannot hold more elements than its text has room for, so a huge shape over a short text allocates little. */
function jsonCount(input: InputHeader): number {
  if (input.isElement) return 1;
  return Math.min(input.elementCount, jsonElementsMax(input.dataEnd - input.dataAt));
}

function capacityBytes(input: InputHeader): number {
  if (input.dataAt === -1) return input.binaryBytes;
  const textBytes = input.dataEnd - input.dataAt;
  if (input.datatype === "BYTES") return input.isElement ? textBytes + 2 : jsonBytesLengthMax(textBytes);
  return jsonCount(input) * elementBytes[input.datatype];
}

const elementBytes: Readonly<Record<Datatype, number>> = {
  BOOL: 1,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  FP16: 2,
  FP32: 4,
  FP64: 8,
  BYTES: 0,
  BF16: 2,
};

function fillFromJson(header: PlacedHeader, input: InputHeader, into: Uint8Array, integerRange: IntegerRange): number {
  const { datatype } = input;
  if (datatype === "FP16" || datatype === "BF16") throw new Error(`bug: ${datatype} in JSON passed the header's check`);
  const { scanner } = header;
  scanner.at = input.dataAt;
  const count = jsonCount(input);
  try {
    if (input.isElement) return readJsonElement(scanner, { datatype, into, integerRange });
    const used = readJsonData(scanner, { datatype, count, into, integerRange });
    if (count === input.elementCount || datatype === "BYTES") return used;
    throw new InferenceError("INTERNAL", "Shape does not match true shape of 'data' field");
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    if (error.code === "INVALID_ARG") {
      throw new InferenceError("INVALID_ARG", `Unable to parse 'data': ${error.message} of input '${input.name}'`);
    }
    // Triton words a wrong element of a BYTES tensor differently from the other datatypes'.
    if (datatype === "BYTES" && error.reason === "not-a-string") {
      throw new InferenceError("INTERNAL", `Unable to parse JSON bytes array: ${error.message}`);
    }
    throw unableToParse("data", error.message);
  }
}

/** Spreads the tail, as it arrives in pieces of any size, over the places of the binary inputs: the one copy from the socket. */
export class TailWriter {
  readonly #segments: readonly Uint8Array[];
  #segment = 0;
  #at = 0;

  constructor(segments: readonly Uint8Array[]) {
    this.#segments = segments;
  }

  write(chunk: Uint8Array): void {
    let from = 0;
    while (from < chunk.length) {
      const place = this.#segments[this.#segment];
      if (place === undefined) throw new Error("bug: more tail than was announced");
      const take = Math.min(place.length - this.#at, chunk.length - from);
      place.set(take === chunk.length ? chunk : chunk.subarray(from, from + take), this.#at);
      from += take;
      this.#at += take;
      if (this.#at === place.length) {
        this.#segment++;
        this.#at = 0;
      }
    }
  }
}
