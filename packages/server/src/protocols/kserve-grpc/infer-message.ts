import type { ByteLease } from "@galatea/base";
import type { Block, BlockSource } from "../../tensor/index.ts";
import { GrpcError, type MessageSink } from "../grpc-listener/index.ts";
import { readParameterEntry, type WireParameter } from "./infer-parameters.ts";
import { malformedMessageError, ProtobufReader, wireTypes } from "./protobuf-reader.ts";

/** A range of a message that is decoded later, when the datatype of its tensor is known. */
export interface Span {
  readonly bytes: Buffer;
  readonly at: number;
  readonly end: number;
}

/** One entry of `inputs`. */
export interface MessageInput {
  name: string;
  datatype: string;
  shape: number[];
  /** Exact values of dimensions over 2^53, by index, for the error that rejects them. */
  largeDimensions?: Map<number, bigint>;
  parameters: Map<string, WireParameter>;
  /** Ranges of `contents`, one for each time that the field was sent. Empty: the elements are in `raw_input_contents`. */
  contents: Span[];
}

/** One entry of `outputs`. */
export interface MessageOutput {
  name: string;
  parameters: Map<string, WireParameter>;
}

/** One entry of `raw_input_contents`. The bytes are in the model's arena if the model has one. */
export interface RawContents {
  readonly bytes: Uint8Array;
  readonly block: Block | null;
}

/** A received ModelInferRequest. The receiver owns the blocks of `raw`. */
export interface InferMessage {
  modelName: string;
  modelVersion: string;
  id: string;
  parameters: Map<string, WireParameter>;
  inputs: MessageInput[];
  outputs: MessageOutput[];
  raw: RawContents[];
  /** Memory lease of the message, which does not include tensors in the arena. The receiver of the message releases the lease. */
  readonly memory: ByteLease;
}

/** Maximum number of entries of all repeated fields together; each entry takes memory in addition to its bytes. */
const entriesMax = 100_000;
/** Estimated memory of an entry, in bytes. The first `entriesCounted` entries are not charged. */
const entryBytes = 256;
const entriesCounted = 64;

const fields = { modelName: 1, modelVersion: 2, id: 3, parameters: 4, inputs: 5, outputs: 6, raw: 7 } as const;

export interface InferMessageOptions {
  /** Length of the whole message. */
  readonly byteLength: number;
  /** The memory lease of this message, which no other message shares. */
  readonly memory: ByteLease;
  /** Returns the memory for the tensors of the model that the message has named so far; null to use plain memory. */
  readonly arenaOf: (message: InferMessage) => BlockSource | null;
  /** Called with the complete message. */
  readonly done: (message: InferMessage) => void;
}

/**
 * Reads a ModelInferRequest as its bytes arrive. Raw tensors are copied once, from the connection's buffers to shared memory; all other
 * fields are small. Throws GrpcError. The caller must then call `release`, which frees the tensors.
 */
export class InferMessageReader implements MessageSink {
  readonly #options: InferMessageOptions;
  #message: InferMessage | null;
  #entries = 0;
  /** Received bytes of an incomplete field. The buffer has space for the whole field if its length is known. */
  #partial: Buffer | null = null;
  #partialAt = 0;
  /** The raw tensor that is being received. */
  #filling: Uint8Array | null = null;
  #fillAt = 0;
  #receivedBytes = 0;
  /** True while a chunk of the connection is read; false for a field that was joined from several chunks. */
  #isReadingChunk = false;

  constructor(options: InferMessageOptions) {
    this.#options = options;
    this.#message = newMessage(options.memory);
  }

  write(chunk: Buffer): void {
    this.#receivedBytes += chunk.length;
    const behindBytes = this.#options.byteLength - this.#receivedBytes;
    let at = 0;
    while (at < chunk.length) {
      if (this.#filling !== null) at = this.#fill(chunk, at);
      else if (this.#partial !== null) at = this.#complete(chunk, at, behindBytes);
      else {
        this.#isReadingChunk = true;
        at = this.#read(chunk, at, behindBytes);
      }
    }
  }

  end(): void {
    if (this.#filling !== null || this.#partial !== null) throw malformedMessageError("it ends inside of a field");
    const message = this.#message!;
    this.#message = null;
    this.#options.done(message);
  }

  /** Frees the tensors of an incomplete message. */
  release(): void {
    for (const { block } of this.#message?.raw ?? []) block?.release();
    if (this.#message !== null) this.#options.memory[Symbol.dispose]();
    this.#message = null;
  }

  #fill(chunk: Buffer, from: number): number {
    const location = this.#filling!;
    const take = Math.min(location.length - this.#fillAt, chunk.length - from);
    location.set(from === 0 && take === chunk.length ? chunk : chunk.subarray(from, from + take), this.#fillAt);
    this.#fillAt += take;
    if (this.#fillAt === location.length) this.#filling = null;
    return from + take;
  }

  /** Completes a field that began in the previous chunk. */
  #complete(chunk: Buffer, from: number, behindBytes: number): number {
    const partial = this.#partial!;
    const take = Math.min(partial.length - this.#partialAt, chunk.length - from);
    chunk.copy(partial, this.#partialAt, from, from + take);
    this.#partialAt += take;
    if (this.#partialAt < partial.length) return from + take;
    this.#partial = null;
    this.#isReadingChunk = false;
    // If the key or length is still incomplete, `#read` keeps it again, with space for one more byte.
    this.#read(partial, 0, behindBytes + chunk.length - from - take);
    return from + take;
  }

  /**
   * Reads the complete fields of `bytes`, and keeps the beginning of an incomplete one. `behindBytes` is the number of bytes of the message
   * that follow `bytes`. Returns the offset of the first unread byte.
   */
  #read(bytes: Buffer, from: number, behindBytes: number): number {
    const reader = new ProtobufReader(bytes, from);
    while (reader.at < bytes.length) {
      const start = reader.at;
      const header = fieldHeader(bytes, start);
      if (header === null) return this.#keep(bytes, start, bytes.length - start + 1);
      const { field, wireType, valueAt, valueBytes } = header;
      // This check precedes the allocation of memory for the field.
      if (valueAt + valueBytes > bytes.length + behindBytes)
        throw malformedMessageError("a field is longer than the message");
      if (field === fields.raw && wireType === wireTypes.delimited) {
        reader.at = valueAt;
        this.#openRaw(valueBytes);
        while (this.#filling !== null && reader.at < bytes.length) reader.at = this.#fill(bytes, reader.at);
        continue;
      }
      if (valueAt + valueBytes > bytes.length) return this.#keep(bytes, start, valueAt - start + valueBytes);
      reader.at = start;
      reader.next();
      this.#readField(reader);
    }
    return reader.at;
  }

  #keep(bytes: Buffer, start: number, byteLength: number): number {
    this.#options.memory.grow(byteLength);
    this.#partial = Buffer.allocUnsafeSlow(byteLength);
    this.#partialAt = bytes.copy(this.#partial, 0, start);
    return bytes.length;
  }

  #openRaw(byteLength: number): void {
    this.#count();
    const message = this.#message!;
    const arena = message.modelName === "" || byteLength === 0 ? null : this.#options.arenaOf(message);
    const block = arena === null ? null : arena.allocate(byteLength);
    if (block === null) this.#options.memory.grow(byteLength);
    const bytes = block === null ? new Uint8Array(byteLength) : block.bytes.subarray(0, byteLength);
    message.raw.push({ bytes, block });
    if (byteLength === 0) return;
    this.#filling = bytes;
    this.#fillAt = 0;
  }

  #readField(reader: ProtobufReader): void {
    const message = this.#message!;
    switch (reader.field) {
      case fields.modelName:
        message.modelName = reader.string();
        return;
      case fields.modelVersion:
        message.modelVersion = reader.string();
        return;
      case fields.id:
        message.id = reader.string();
        return;
      case fields.parameters:
        this.#count();
        return readParameterEntry(reader.message(), message.parameters);
      case fields.inputs:
        this.#count();
        message.inputs.push(this.#readInput(reader.message()));
        return;
      case fields.outputs:
        this.#count();
        message.outputs.push(this.#readOutput(reader.message()));
        return;
      default:
        reader.skip();
    }
  }

  #readInput(reader: ProtobufReader): MessageInput {
    const input: MessageInput = { name: "", datatype: "", shape: [], parameters: new Map(), contents: [] };
    while (reader.next()) {
      if (reader.field === 1) input.name = reader.string();
      else if (reader.field === 2) input.datatype = reader.string();
      else if (reader.field === 3) this.#readShape(reader, input);
      else if (reader.field === 4) {
        this.#count();
        readParameterEntry(reader.message(), input.parameters);
      } else if (reader.field === 5) {
        this.#count();
        input.contents.push(this.#readSpan(reader));
      } else reader.skip();
    }
    return input;
  }

  /** Returns a range that stays valid after the call. The bytes of a chunk are copied, because the memory of the chunk is reused. */
  #readSpan(reader: ProtobufReader): Span {
    const end = reader.delimited();
    const { bytes, at } = reader;
    reader.at = end;
    if (!this.#isReadingChunk) return { bytes, at, end };
    this.#options.memory.grow(end - at);
    return { bytes: Buffer.from(bytes.subarray(at, end)), at: 0, end: end - at };
  }

  #readShape(reader: ProtobufReader, input: MessageInput): void {
    if (reader.wireType === wireTypes.varint) return this.#readDimension(reader, input);
    const end = reader.delimited();
    while (reader.at < end) this.#readDimension(reader, input);
  }

  #readDimension(reader: ProtobufReader, input: MessageInput): void {
    this.#count();
    const { at } = reader;
    const dimension = reader.int64Number();
    if (!Number.isSafeInteger(dimension)) {
      reader.at = at;
      (input.largeDimensions ??= new Map()).set(input.shape.length, reader.int64());
    }
    input.shape.push(dimension);
  }

  #readOutput(reader: ProtobufReader): MessageOutput {
    const output: MessageOutput = { name: "", parameters: new Map() };
    while (reader.next()) {
      if (reader.field === 1) output.name = reader.string();
      else if (reader.field === 2) {
        this.#count();
        readParameterEntry(reader.message(), output.parameters);
      } else reader.skip();
    }
    return output;
  }

  #count(): void {
    if (++this.#entries % entriesCounted === 0) this.#options.memory.grow(entriesCounted * entryBytes);
    if (this.#entries > entriesMax)
      throw new GrpcError(
        "INVALID_ARGUMENT",
        `a request has at most ${entriesMax} inputs, outputs, dimensions and parameters`,
      );
  }
}

function newMessage(memory: ByteLease): InferMessage {
  return { modelName: "", modelVersion: "", id: "", parameters: new Map(), inputs: [], outputs: [], raw: [], memory };
}

interface FieldHeader {
  readonly field: number;
  readonly wireType: number;
  readonly valueAt: number;
  readonly valueBytes: number;
}

const varintBytesMax = 10;

/** Returns the key and extent of the field at `start`; null when the key, the length or a number is incomplete. */
function fieldHeader(bytes: Buffer, start: number): FieldHeader | null {
  const keyEnd = varintEnd(bytes, start);
  if (keyEnd === -1) return null;
  const reader = new ProtobufReader(bytes, start);
  reader.next();
  const { field, wireType } = reader;
  switch (wireType) {
    case wireTypes.varint: {
      const end = varintEnd(bytes, keyEnd);
      return end === -1 ? null : { field, wireType, valueAt: keyEnd, valueBytes: end - keyEnd };
    }
    case wireTypes.fixed64:
      return { field, wireType, valueAt: keyEnd, valueBytes: 8 };
    case wireTypes.fixed32:
      return { field, wireType, valueAt: keyEnd, valueBytes: 4 };
    case wireTypes.delimited: {
      if (varintEnd(bytes, keyEnd) === -1) return null;
      const valueBytes = reader.uint32();
      return { field, wireType, valueAt: reader.at, valueBytes };
    }
    default:
      throw malformedMessageError(`field ${field} has the wire type ${wireType}`);
  }
}

function varintEnd(bytes: Buffer, start: number): number {
  for (let at = start; at < bytes.length; at++) {
    if (bytes[at]! < 0x80) return at + 1;
    if (at - start >= varintBytesMax) throw malformedMessageError("a number is longer than ten bytes");
  }
  return -1;
}
