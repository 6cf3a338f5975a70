import { InferenceError, type ByteLease, type EventLoopQueue, type Semaphore } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import { noParameters } from "../../inference/index.ts";
import { JsonScanner, releaseTensors, type Tensor } from "../../tensor/index.ts";
import {
  reserveBodyMemory,
  asBodyMemory,
  declaredLength,
  discardChunk,
  exchangeMemoryBytes,
  type BufferedBody,
  readBody,
  bufferBody,
  type Exchange,
  type HttpLimits,
} from "../http-listener/index.ts";
import {
  parseInferHeader,
  placeInputs,
  placeInputsInChunks,
  placeRawInput,
  viewTail,
  scanInChunks,
  wholeTextBytesMax,
  type InferHeader,
  type InputPlacementOptions,
  type PlacedInputs,
} from "../infer-codec/index.ts";
import { InflationSlot } from "../inflation-slot.ts";
import { decompress } from "./compression.ts";

export interface InferBodyOptions {
  readonly model: ServedModel;
  readonly limits: HttpLimits;
  /** Length of the JSON header. Null if the whole body is JSON. 0 if the body has no header and is the only input. */
  readonly headerBytes: number | null;
  readonly compressed: boolean;
  /** Lets the decoder yield to the event loop while it reads long JSON. */
  readonly loopQueue: EventLoopQueue;
  /** Limits how many bodies are decompressed to a large size at once (`InflationSlot`). */
  readonly inflations: Semaphore;
}

/** The fields of a request except its tensors. They do not refer to the request's text, which may be freed. */
export type CallHeader = Omit<InferHeader, "scanner" | "inputs">;

/** A decoded request. The receiver owns the tensors. */
export interface DecodedBody {
  readonly header: CallHeader;
  readonly tensors: readonly Tensor[];
}

/**
 * Reads and decodes a request's body. A body of known length is read from the socket directly to tensor memory. A chunked or compressed
 * body is buffered first. Releases all memory when it throws.
 */
export async function readInferBody(exchange: Exchange, options: InferBodyOptions): Promise<DecodedBody> {
  const declared = declaredLength(exchange);
  if (options.compressed) {
    using slot = new InflationSlot(options.inflations, exchange.signal);
    return await decodeWhole(await readCompressed(exchange, options, slot), exchange, options);
  }
  if (declared === -1) return decodeWhole(await bufferBody(exchange, options.limits), exchange, options);
  // Triton treats an empty body as a raw request of zero bytes.
  if (options.headerBytes === 0 || declared === 0) return streamRaw(exchange, declared, options);
  const headerBytes = options.headerBytes ?? declared;
  if (headerBytes === declared || headerBytes > wholeTextBytesMax) {
    checkJsonBytes(headerBytes, options);
    return decodeWhole(await bufferBody(exchange, options.limits), exchange, options);
  }
  return streamBinary(exchange, declared, headerBytes, options);
}

async function readCompressed(
  exchange: Exchange,
  { limits }: InferBodyOptions,
  slot: InflationSlot,
): Promise<BufferedBody> {
  const { memory } = exchange;
  const packed = await bufferBody(exchange, limits);
  const packedBytes = memory.bytes - exchangeMemoryBytes;
  try {
    return await decompress(packed, { outputBytesMax: limits.inputBytesMax, memory, slot });
  } finally {
    packed.discard();
    memory.shrinkBy(packedBytes);
  }
}

/** Decodes a buffered body. The body may be freed afterwards, unless tensors in plain memory refer to it. */
function decodeWhole(
  body: BufferedBody,
  exchange: Exchange,
  options: InferBodyOptions,
): DecodedBody | Promise<DecodedBody> {
  const bytes = body.bytes();
  if ((options.headerBytes ?? bytes.length) > wholeTextBytesMax && options.model.arena !== null)
    return decodeLong(body, exchange, options);
  let decoded: DecodedBody | null = null;
  try {
    decoded = decode(bytes, exchange, options);
  } finally {
    discardDecoded(body, decoded);
  }
  return decoded;
}

async function decodeLong(body: BufferedBody, exchange: Exchange, options: InferBodyOptions): Promise<DecodedBody> {
  let decoded: DecodedBody | null = null;
  try {
    decoded = await decodeInChunks(body.bytes(), exchange, options);
  } finally {
    discardDecoded(body, decoded);
  }
  return decoded;
}

function discardDecoded(body: BufferedBody, decoded: DecodedBody | null): void {
  if (decoded === null || decoded.tensors.every(({ block }) => block !== null)) body.discard();
}

function decode(body: Buffer, exchange: Exchange, options: InferBodyOptions): DecodedBody {
  const { model } = options;
  const { memory } = exchange;
  const headerBytes = options.headerBytes ?? body.length;
  if (headerBytes === 0) return decodeRaw(body, exchange, options);
  if (headerBytes > body.length) throw jsonTooShort(headerBytes - body.length);
  checkJsonBytes(headerBytes, options);
  const json = headerBytes === body.length ? body : body.subarray(0, headerBytes);
  const header = parseInferHeader(new JsonScanner(json), options.limits.inputBytesMax, memory);
  const tail = body.subarray(headerBytes);
  const { arena } = model;
  const location = placeOptions(options, tail.length, memory);
  if (arena === null) return { header: callHeader(header), tensors: viewTail(header, tail, location) };
  const { tensors, tail: writer } = placeInputs(header, location);
  writer.write(tail);
  memory.shrinkTo(exchangeMemoryBytes + header.memoryBytes);
  return { header: callHeader(header), tensors };
}

/** Decodes long JSON in chunks, and yields to the event loop between them. */
async function decodeInChunks(body: Buffer, exchange: Exchange, options: InferBodyOptions): Promise<DecodedBody> {
  const { memory, signal } = exchange;
  const yieldOptions = { loopQueue: options.loopQueue, signal };
  const headerBytes = options.headerBytes ?? body.length;
  if (headerBytes > body.length) throw jsonTooShort(headerBytes - body.length);
  checkJsonBytes(headerBytes, options);
  const scanner = await scanInChunks(body.subarray(0, headerBytes), yieldOptions);
  const header = parseInferHeader(scanner, options.limits.inputBytesMax, memory);
  const tail = body.subarray(headerBytes);
  const { tensors, tail: writer } = await placeInputsInChunks(
    header,
    placeOptions(options, tail.length, memory),
    yieldOptions,
  );
  writer.write(tail);
  // Tensors are in plain memory if the model's arena was closed meanwhile. Plain memory stays charged.
  if (tensors.every(({ block }) => block !== null)) memory.shrinkTo(exchangeMemoryBytes + header.memoryBytes);
  return { header: callHeader(header), tensors };
}

function decodeRaw(body: Buffer, exchange: Exchange, options: InferBodyOptions): DecodedBody {
  const { into, tensor } = placeRaw(body.length, options);
  into.set(body);
  if (tensor.block !== null) exchange.memory.shrinkTo(exchangeMemoryBytes);
  return { header: rawHeader, tensors: [tensor] };
}

function callHeader(header: InferHeader): CallHeader {
  const { id, parameters, sequence, priority, queueTimeoutUs, outputs, binaryOutputs, memoryBytes } = header;
  return { id, parameters, sequence, priority, queueTimeoutUs, outputs, binaryOutputs, memoryBytes };
}

function placeOptions(options: InferBodyOptions, tailBytes: number, memory: ByteLease): InputPlacementOptions {
  const { model } = options;
  return {
    modelName: model.view.config.name,
    tailBytes,
    arena: model.arena,
    memory,
  };
}

function placeRaw(bodyBytes: number, options: InferBodyOptions): ReturnType<typeof placeRawInput> {
  const { model, limits } = options;
  if (bodyBytes > limits.inputBytesMax) {
    throw new InferenceError(
      "INVALID_ARG",
      `Raw input has a byte_size (${bodyBytes} bytes) that exceeds the maximum allowed value of ${limits.inputBytesMax} bytes. Use --http-max-input-size to increase the limit.`,
    );
  }
  return placeRawInput(model.view.config, bodyBytes, model.arena);
}

/** The fields of a raw request, which has no JSON header: all outputs are binary. */
const rawHeader: CallHeader = {
  id: "",
  parameters: noParameters,
  sequence: null,
  priority: 0,
  queueTimeoutUs: 0,
  outputs: null,
  binaryOutputs: true,
  memoryBytes: 0,
};

async function streamRaw(exchange: Exchange, declared: number, options: InferBodyOptions): Promise<DecodedBody> {
  const { model, limits } = options;
  // A model that is being unloaded has no arena. The body is then read to plain memory, and the engine rejects the call.
  if (model.arena === null && declared <= limits.inputBytesMax) reserveBodyMemory(exchange, declared);
  const { into, tensor } = asBodyMemory(() => placeRaw(declared, options));
  let at = 0;
  try {
    await readBody(exchange, options.limits, {
      write(chunk) {
        into.set(chunk, at);
        at += chunk.length;
        discardChunk(chunk);
      },
    });
  } catch (error) {
    releaseTensors([tensor]);
    throw error;
  }
  return { header: rawHeader, tensors: [tensor] };
}

/**
 * Reads a JSON header with binary data after it. The header usually arrives with the first bytes. Every byte after the header is copied
 * once, to its tensor.
 */
async function streamBinary(
  exchange: Exchange,
  declared: number,
  headerBytes: number,
  options: InferBodyOptions,
): Promise<DecodedBody> {
  checkJsonBytes(headerBytes, options);
  const { memory } = exchange;
  if (declared <= options.limits.bodyBytesMax) reserveBodyMemory(exchange, declared);
  let header: InferHeader | null = null;
  let placed: PlacedInputs | null = null;
  let gathered: Buffer | null = null;
  let gatheredBytes = 0;
  const begin = (json: Buffer) => {
    header = parseInferHeader(new JsonScanner(json), options.limits.inputBytesMax, memory);
    // The arena charges the tensors from here on.
    memory.shrinkBy(declared - headerBytes);
    placed = placeInputs(header, placeOptions(options, declared - headerBytes, memory));
  };
  const write = (chunk: Buffer) => {
    if (placed !== null) {
      placed.tail.write(chunk);
      return discardChunk(chunk);
    }
    if (gathered === null && chunk.length >= headerBytes) {
      begin(chunk.subarray(0, headerBytes));
      placed!.tail.write(chunk.subarray(headerBytes));
      return discardChunk(chunk);
    }
    gathered ??= Buffer.allocUnsafeSlow(headerBytes);
    const take = Math.min(chunk.length, headerBytes - gatheredBytes);
    gathered.set(chunk.subarray(0, take), gatheredBytes);
    gatheredBytes += take;
    if (gatheredBytes < headerBytes) return;
    begin(gathered);
    placed!.tail.write(chunk.subarray(take));
    discardChunk(chunk);
  };
  try {
    await readBody(exchange, options.limits, { write });
  } catch (error) {
    if (placed !== null) releaseTensors((placed as PlacedInputs).tensors);
    throw error;
  }
  const parsed = header as InferHeader | null;
  const { tensors } = (placed as PlacedInputs | null)!;
  if (tensors.every(({ block }) => block !== null)) memory.shrinkTo(exchangeMemoryBytes + parsed!.memoryBytes);
  return { header: callHeader(parsed!), tensors };
}

function checkJsonBytes(headerBytes: number, options: InferBodyOptions): void {
  const { inputBytesMax } = options.limits;
  if (headerBytes <= inputBytesMax) return;
  throw new InferenceError(
    "INVALID_ARG",
    `request JSON size of ${headerBytes} bytes exceeds the maximum allowed input size of ${inputBytesMax} bytes. Use --http-max-input-size to increase the limit.`,
  );
}

function jsonTooShort(missingBytes: number): InferenceError {
  return new InferenceError("INVALID_ARG", `unexpected size for request JSON, expecting ${missingBytes} more bytes`);
}
