import { InferenceError, type ByteLease, type YieldOptions } from "@galatea/base";
import {
  JsonDataReader,
  jsonBytesLengthMax,
  jsonElementsMax,
  readJsonElement,
  releaseTensors,
  type Block,
  type BlockSource,
  type Datatype,
  type JsonDataTarget,
  type Tensor,
} from "../../tensor/index.ts";
import { runInChunks, readChunkBytes, wholeTextBytesMax } from "./in-chunks.ts";
import { memberError } from "./json-access.ts";
import type { InferHeader, InputHeader } from "./infer-header.ts";

/** Tensors start on cache lines, because native libraries and numpy prefer aligned memory. */
const alignmentBytes = 64;

export interface InputPlacementOptions {
  readonly modelName: string;
  /** Number of bytes after the JSON header. */
  readonly tailBytes: number;
  /** Memory for tensors; null to use plain memory. */
  readonly arena: BlockSource | null;
  /** The request's memory lease, to which plain memory is charged. */
  readonly memory: ByteLease;
}

/** The inputs of a request, and a scanner of the text that contains the elements of JSON inputs. */
export type PlacedHeader = Pick<InferHeader, "scanner" | "inputs">;

/** The tensors of a request. Tensors from JSON contain their elements; the caller must still write the binary data through `tail`. */
export interface PlacedInputs {
  readonly tensors: readonly Tensor[];
  readonly tail: TailWriter;
}

/**
 * Allocates one block with a segment for each tensor of a request, and reads the JSON inputs into it. The caller owns the tensors. Releases
 * all memory when it throws. When binary data is already in plain memory, `viewTail` avoids the copy.
 */
export function placeInputs(header: PlacedHeader, options: InputPlacementOptions): PlacedInputs {
  const placing = new Placing(header, options);
  try {
    for (const input of header.inputs) placing.add(input);
    return placing.placed();
  } catch (error) {
    placing.release();
    throw error;
  }
}

/** Allocates and reads inputs like `placeInputs`, but reads long JSON in chunks. Releases all memory when it rejects. */
export async function placeInputsInChunks(
  header: PlacedHeader,
  options: InputPlacementOptions,
  yieldOptions: YieldOptions,
): Promise<PlacedInputs> {
  const placing = new Placing(header, options);
  try {
    for (const input of header.inputs) {
      const isLong = input.dataEnd - input.dataAt > wholeTextBytesMax && !input.isElement;
      if (isLong) await placing.addInChunks(input, yieldOptions);
      else placing.add(input);
    }
    return placing.placed();
  } catch (error) {
    placing.release();
    throw error;
  }
}

/** The tensors of a request while they are written to one block. */
class Placing {
  readonly #header: PlacedHeader;
  readonly #block: Block | null;
  readonly #bytes: Uint8Array;
  readonly #isOnly: boolean;
  readonly #tensors: Tensor[] = [];
  readonly #segments: Uint8Array[] = [];
  #offset = 0;

  constructor(header: PlacedHeader, options: InputPlacementOptions) {
    checkTail(header.inputs, options);
    let totalBytes = 0;
    for (const input of header.inputs) totalBytes += aligned(capacityBytes(input));
    this.#header = header;
    this.#isOnly = header.inputs.length === 1;
    this.#block = options.arena !== null && totalBytes > 0 ? options.arena.allocate(totalBytes) : null;
    if (options.arena === null) options.memory.grow(totalBytes);
    this.#bytes = this.#block === null ? new Uint8Array(totalBytes) : this.#block.bytes;
  }

  add(input: InputHeader): void {
    const location = this.#place(input);
    if (input.dataAt === -1) {
      this.#segments.push(location);
      this.#push(input, location, location);
    } else {
      const usedBytes = fillFromJson(this.#header, input, location);
      this.#push(input, location, location.subarray(0, usedBytes));
    }
  }

  async addInChunks(input: InputHeader, yieldOptions: YieldOptions): Promise<void> {
    const location = this.#place(input);
    let usedBytes: number;
    try {
      const reading = jsonReading(this.#header, input, location);
      await runInChunks(yieldOptions, () => reading.advance(readChunkBytes));
      usedBytes = checkedCount(input, reading.byteLength);
    } catch (error) {
      throw dataError(input, error);
    }
    this.#push(input, location, location.subarray(0, usedBytes));
  }

  placed(): PlacedInputs {
    // The references of the segments keep the block allocated from here on.
    if (!this.#isOnly) this.#block?.release();
    return { tensors: this.#tensors, tail: new TailWriter(this.#segments) };
  }

  release(): void {
    if (!this.#isOnly) releaseTensors(this.#tensors);
    this.#block?.release();
  }

  #place(input: InputHeader): Uint8Array {
    const capacity = capacityBytes(input);
    const location = this.#bytes.subarray(this.#offset, this.#offset + capacity);
    this.#offset += aligned(capacity);
    return location;
  }

  #push(input: InputHeader, location: Uint8Array, data: Uint8Array): void {
    const block = this.#block;
    const startAt = location.byteOffset - this.#bytes.byteOffset;
    const own = block === null || this.#isOnly ? block : block.segment(startAt, location.byteLength);
    this.#tensors.push({ name: input.name, datatype: input.datatype, shape: input.shape, data, block: own });
  }
}

/** Returns the binary inputs as views of a body in plain memory, for models that do not need shared memory. */
export function viewTail(header: InferHeader, tail: Uint8Array, options: InputPlacementOptions): Tensor[] {
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
    const location = new Uint8Array(capacity);
    const data = location.subarray(0, fillFromJson(header, input, location));
    return { name, datatype, shape, data, block: null };
  });
}

function aligned(byteLength: number): number {
  return Math.ceil(byteLength / alignmentBytes) * alignmentBytes;
}

function checkTail(inputs: readonly InputHeader[], options: InputPlacementOptions): void {
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

/** Returns the number of elements, limited by the length of the JSON text, so that a huge shape with a short text allocates little. */
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

function fillFromJson(header: PlacedHeader, input: InputHeader, into: Uint8Array): number {
  try {
    if (input.isElement) {
      header.scanner.at = input.dataAt;
      return readJsonElement(header.scanner, { datatype: jsonDatatype(input), into });
    }
    const reading = jsonReading(header, input, into);
    reading.advance(Infinity);
    return checkedCount(input, reading.byteLength);
  } catch (error) {
    throw dataError(input, error);
  }
}

function jsonReading({ scanner }: PlacedHeader, input: InputHeader, into: Uint8Array): JsonDataReader {
  scanner.at = input.dataAt;
  return new JsonDataReader(scanner, {
    datatype: jsonDatatype(input),
    count: jsonCount(input),
    into,
  });
}

function jsonDatatype({ datatype }: InputHeader): JsonDataTarget["datatype"] {
  if (datatype === "FP16" || datatype === "BF16") throw new Error(`bug: ${datatype} in JSON passed the header's check`);
  return datatype;
}

/** Checks that the JSON contained as many elements as the shape requires. */
function checkedCount(input: InputHeader, usedBytes: number): number {
  if (jsonCount(input) === input.elementCount || input.datatype === "BYTES") return usedBytes;
  throw new InferenceError("INTERNAL", "Shape does not match true shape of 'data' field");
}

/** Converts an error in the elements of an input to Triton's error. */
function dataError(input: InputHeader, error: unknown): unknown {
  if (!(error instanceof InferenceError)) return error;
  if (error.code === "INVALID_ARG") {
    return new InferenceError("INVALID_ARG", `Unable to parse 'data': ${error.message} of input '${input.name}'`);
  }
  // Triton has a separate text for an element of a BYTES tensor that is not a string.
  if (input.datatype === "BYTES" && error.reason === "not-a-string") {
    return new InferenceError("INTERNAL", `Unable to parse JSON bytes array: ${error.message}`);
  }
  return memberError("data", error.message);
}

/**
 * Writes the binary data after the header, which arrives in chunks of any size, to the binary inputs. The data is copied only here, after
 * it was read from the socket.
 */
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
      const location = this.#segments[this.#segment];
      if (location === undefined) throw new Error("bug: more tail than was announced");
      const take = Math.min(location.length - this.#at, chunk.length - from);
      location.set(take === chunk.length ? chunk : chunk.subarray(from, from + take), this.#at);
      from += take;
      this.#at += take;
      if (this.#at === location.length) {
        this.#segment++;
        this.#at = 0;
      }
    }
  }
}
