import { InferenceError } from "../../base/index.ts";
import type { Engine } from "../../engine/index.ts";
import { noParameters } from "../../inference/index.ts";
import { JsonScanner, releaseTensors, type IntegerRange, type Tensor } from "../../tensor/index.ts";
import {
  declaredLength,
  discardChunk,
  readBody,
  readWholeBody,
  type Exchange,
  type HttpLimits,
} from "../http-listener/index.ts";
import {
  parseInferHeader,
  placeInputs,
  placeRawInput,
  viewTail,
  type InferHeader,
  type PlaceOptions,
  type PlacedInputs,
} from "../infer-codec/index.ts";
import { decompress } from "./compression.ts";

/** Which model a call is for, as it came on the wire. */
export interface InferTarget {
  readonly namespace: string;
  readonly modelName: string;
  readonly modelVersion: string;
}

export interface InferBodyOptions {
  readonly engine: Engine;
  readonly limits: HttpLimits;
  readonly integerRange: IntegerRange;
  readonly target: InferTarget;
  /** Length of the JSON header; null: the whole body is JSON; 0: there is none, the body is the only input. */
  readonly headerBytes: number | null;
  readonly compressed: boolean;
}

/** A decoded request. The receiver owns the tensors. */
export interface DecodedBody {
  readonly header: InferHeader;
  readonly tensors: readonly Tensor[];
}

/**
 * Reads and decodes a request's body. A body of known length goes from the socket straight to where its tensors will stay;
 * a chunked or compressed one is gathered first. Nothing stays allocated when it throws.
 */
export async function readInferBody(exchange: Exchange, options: InferBodyOptions): Promise<DecodedBody> {
  const declared = declaredLength(exchange);
  if (options.compressed) {
    const packed = await readWholeBody(exchange, options.limits);
    return decodeWhole(await decompress(packed, options.limits.inputBytesMax), options);
  }
  if (declared === -1) return decodeWhole(await readWholeBody(exchange, options.limits), options);
  // An empty body has no JSON either: the original takes it as a raw request of no bytes.
  if (options.headerBytes === 0 || declared === 0) return streamRaw(exchange, declared, options);
  if (options.headerBytes === null || options.headerBytes === declared) {
    checkJsonBytes(declared, options);
    return decodeWhole(await readWholeBody(exchange, options.limits), options);
  }
  return streamBinary(exchange, declared, options.headerBytes, options);
}

function decodeWhole(body: Buffer, options: InferBodyOptions): DecodedBody {
  const { engine, target } = options;
  const headerBytes = options.headerBytes ?? body.length;
  if (headerBytes === 0) return decodeRaw(body, options);
  if (headerBytes > body.length) throw jsonTooShort(headerBytes - body.length);
  checkJsonBytes(headerBytes, options);
  const header = parseInferHeader(
    headerBytes === body.length ? body : body.subarray(0, headerBytes),
    options.limits.inputBytesMax,
  );
  const tail = body.subarray(headerBytes);
  const arena = engine.bodyArena(target.namespace, target.modelName);
  const place = placeOptions(options, tail.length);
  if (arena === null) return { header, tensors: viewTail(header, tail, place) };
  const { tensors, tail: writer } = placeInputs(header, place);
  writer.write(tail);
  return { header, tensors };
}

function decodeRaw(body: Buffer, options: InferBodyOptions): DecodedBody {
  const { into, tensor } = placeRaw(body.length, options);
  into.set(body);
  return { header: rawHeader(), tensors: [tensor] };
}

function placeOptions(options: InferBodyOptions, tailBytes: number): PlaceOptions {
  const { engine, target, integerRange } = options;
  return {
    modelName: target.modelName,
    tailBytes,
    arena: engine.bodyArena(target.namespace, target.modelName),
    integerRange,
  };
}

function placeRaw(bodyBytes: number, options: InferBodyOptions): ReturnType<typeof placeRawInput> {
  const { engine, limits, target } = options;
  const { namespace, modelName, modelVersion } = target;
  if (bodyBytes > limits.inputBytesMax) {
    throw new InferenceError(
      "INVALID_ARG",
      `Raw input has a byte_size (${bodyBytes} bytes) that exceeds the maximum allowed value of ${limits.inputBytesMax} bytes. Use --http-max-input-size to increase the limit.`,
    );
  }
  const metadata = engine.modelMetadata(namespace, modelName, modelVersion);
  const batches = modelBatches(engine, target);
  return placeRawInput(metadata, batches, bodyBytes, engine.bodyArena(namespace, modelName));
}

/** Whether the model's shapes have a batch dimension in front. */
export function modelBatches(engine: Engine, target: InferTarget): boolean {
  const config = engine.modelConfigJson(target.namespace, target.modelName, target.modelVersion) as {
    max_batch_size?: number;
  };
  return (config.max_batch_size ?? 0) > 0;
}

/** A raw request says nothing but its bytes; its outputs come back binary. */
function rawHeader(): InferHeader {
  return {
    scanner: new JsonScanner(new Uint8Array(0)),
    id: "",
    parameters: noParameters,
    sequence: null,
    priority: 0,
    queueTimeoutUs: 0,
    inputs: [],
    outputs: null,
    binaryOutputs: true,
  };
}

async function streamRaw(exchange: Exchange, declared: number, options: InferBodyOptions): Promise<DecodedBody> {
  const { into, tensor } = placeRaw(declared, options);
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
  return { header: rawHeader(), tensors: [tensor] };
}

/** The JSON header usually comes with the first bytes; from then on every byte is copied once, to its tensor. */
async function streamBinary(
  exchange: Exchange,
  declared: number,
  headerBytes: number,
  options: InferBodyOptions,
): Promise<DecodedBody> {
  checkJsonBytes(headerBytes, options);
  let header: InferHeader | null = null;
  let placed: PlacedInputs | null = null;
  let gathered: Buffer | null = null;
  let gatheredBytes = 0;
  const begin = (json: Buffer) => {
    header = parseInferHeader(json, options.limits.inputBytesMax);
    placed = placeInputs(header, placeOptions(options, declared - headerBytes));
  };
  const write = (chunk: Buffer) => {
    if (placed !== null) {
      placed.tail.write(chunk);
      return discardChunk(chunk);
    }
    if (gathered === null && chunk.length >= headerBytes) {
      begin(chunk.subarray(0, headerBytes));
      placed!.tail.write(chunk.subarray(headerBytes));
      return;
    }
    gathered ??= Buffer.allocUnsafeSlow(headerBytes);
    const take = Math.min(chunk.length, headerBytes - gatheredBytes);
    gathered.set(chunk.subarray(0, take), gatheredBytes);
    gatheredBytes += take;
    if (gatheredBytes < headerBytes) return;
    begin(gathered);
    placed!.tail.write(chunk.subarray(take));
  };
  try {
    await readBody(exchange, options.limits, { write });
  } catch (error) {
    if (placed !== null) releaseTensors((placed as PlacedInputs).tensors);
    throw error;
  }
  return { header: header!, tensors: (placed as PlacedInputs | null)!.tensors };
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
