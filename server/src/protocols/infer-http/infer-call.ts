import { InferenceError, type ByteLease } from "../../base/index.ts";
import type { ModelTarget, ServedModel } from "../../engine/index.ts";
import {
  deadlineFromNow,
  releaseResponse,
  type InferenceRequest,
  type InferenceResponse,
} from "../../inference/index.ts";
import type { IntegerRange } from "../../tensor/index.ts";
import {
  BodyError,
  exchangeBytes,
  reply,
  replyPieces,
  type ContentType,
  type Exchange,
  type HttpLimits,
} from "../http-listener/index.ts";
import { jsonTextBytesMax, ResponseEncoder, type EncodedResponse } from "../infer-codec/index.ts";
import { compress, type ResponseEncoding } from "./compression.ts";
import { readInferBody, type DecodedBody } from "./infer-body.ts";

export interface InferCallOptions {
  readonly limits: HttpLimits;
  readonly integerRange: IntegerRange;
  /** The headers of a reply whose body is a JSON header of `jsonBytes` and binary outputs behind it. */
  readonly binaryHeaders: (jsonBytes: number) => string[];
}

export interface InferCallRequest {
  readonly target: ModelTarget;
  /** The model of the target, held by the caller until this call has been answered. */
  readonly model: ServedModel;
  readonly headerBytes: number | null;
  readonly compressed: boolean;
  readonly encoding: ResponseEncoding;
}

/** What went wrong with an inference, and under which content type Triton says so. */
export class InferCallError extends Error {
  readonly error: InferenceError;
  readonly contentType: ContentType;

  constructor(error: InferenceError, contentType: ContentType) {
    super(error.message, { cause: error });
    this.error = error;
    this.contentType = contentType;
  }
}

function decoupled(): InferenceError {
  return new InferenceError("UNSUPPORTED", "HTTP end point doesn't support models with decoupled transaction policy");
}

/** Texts up to this are counted only when a slow reader leaves them lying. */
const uncountedBytesMax = 64 * 1024;

/** Bodies up to this are joined and sent as one buffer: cheaper than four writes. */
const joinedBytesMax = 16 * 1024;

/**
 * One inference over HTTP, from a request whose line and headers have been judged to the reply on its way.
 * Throws InferCallError (nothing has been sent) or BodyError (the listener answers).
 */
export class InferCalls {
  readonly #options: InferCallOptions;
  readonly #encoder = new ResponseEncoder();

  constructor(options: InferCallOptions) {
    this.#options = options;
  }

  async answer(exchange: Exchange, request: InferCallRequest): Promise<void> {
    const { limits, integerRange } = this.#options;
    const { target, model } = request;
    if (model.config.decoupled) throw new InferCallError(decoupled(), "text/plain");
    let decoded: DecodedBody;
    try {
      decoded = await readInferBody(exchange, { limits, integerRange, ...request });
    } catch (error) {
      if (error instanceof BodyError) throw error;
      const plain = error instanceof InferenceError && plainBodyErrors.some((start) => error.message.startsWith(start));
      throw new InferCallError(InferenceError.from(error), plain ? "text/plain" : "application/json");
    }
    let response: InferenceResponse;
    try {
      response = await model.infer(inferenceRequest(decoded, target, exchange));
    } catch (error) {
      const told = InferenceError.from(error);
      throw new InferCallError(told, isRequestError(told) ? "application/json" : "text/plain");
    }
    await this.#reply(exchange, request, decoded, response);
  }

  async #reply(
    exchange: Exchange,
    request: InferCallRequest,
    decoded: DecodedBody,
    response: InferenceResponse,
  ): Promise<void> {
    if (exchange.signal.aborted) return releaseResponse(response);
    const { model } = request;
    const { memory } = exchange;
    const heldBytes = memory.bytes;
    let encoded: EncodedResponse;
    try {
      const textBytes = jsonTextBytesMax(response, decoded.header);
      if (textBytes > uncountedBytesMax) memory.grow(textBytes);
      encoded = this.#encoder.encode(response, {
        id: decoded.header.id,
        outputs: decoded.header.outputs,
        binaryOutputs: decoded.header.binaryOutputs,
        labelsOf: (output) => model.labelsOf(output),
        batches: () => model.config.maxBatchSize > 0,
      });
    } catch (error) {
      releaseResponse(response);
      throw new InferCallError(InferenceError.from(error), "text/plain");
    }
    settle(memory, heldBytes, encoded.jsonBytes);
    if (request.encoding !== "identity") return this.#replyCompressed(exchange, request.encoding, encoded, response);
    this.#replyPlain(exchange, encoded, response);
  }

  #replyPlain(exchange: Exchange, encoded: EncodedResponse, response: InferenceResponse): void {
    const { json, jsonBytes, tails } = encoded;
    if (tails === null) {
      releaseResponse(response);
      if (typeof json === "string") return reply(exchange, 200, "application/json", json);
      return replyPieces(exchange, 200, ["Content-Type", "application/json"], json);
    }
    let tailBytes = 0;
    for (const tail of tails) tailBytes += tail.length;
    const headers = tailBytes === 0 ? ["Content-Type", "application/json"] : this.#options.binaryHeaders(jsonBytes);
    const pieces = [...jsonPieces(json), ...tails];
    if (jsonBytes + tailBytes <= joinedBytesMax) {
      const joined = Buffer.concat(pieces, jsonBytes + tailBytes);
      releaseResponse(response);
      return replyPieces(exchange, 200, headers, [joined]);
    }
    exchange.onClosed(() => releaseResponse(response));
    replyPieces(exchange, 200, headers, pieces);
  }

  async #replyCompressed(
    exchange: Exchange,
    encoding: "gzip" | "deflate",
    encoded: EncodedResponse,
    response: InferenceResponse,
  ): Promise<void> {
    const { json, jsonBytes, tails } = encoded;
    const { memory } = exchange;
    const heldBytes = memory.bytes;
    let body: Buffer;
    try {
      let plainBytes = jsonBytes;
      for (const tail of tails ?? []) plainBytes += tail.length;
      // What is to be compressed lies there in one piece, and what comes out is no larger worth mentioning.
      memory.grow(2 * plainBytes);
      body = await compress([...jsonPieces(json), ...(tails ?? [])], encoding);
    } catch (error) {
      throw new InferCallError(InferenceError.from(error), "text/plain");
    } finally {
      releaseResponse(response);
    }
    if (exchange.signal.aborted) return;
    memory.shrinkTo(Math.min(heldBytes, exchangeBytes) + body.length);
    const headers = tails === null ? ["Content-Type", "application/json"] : this.#options.binaryHeaders(jsonBytes);
    replyPieces(exchange, 200, [...headers, "Content-Encoding", encoding], [body]);
  }
}

/** Of what was taken for a text before it was written, keeps as much as it became. */
function settle(memory: ByteLease, heldBytes: number, textBytes: number): void {
  if (textBytes <= uncountedBytesMax) return memory.shrinkTo(heldBytes);
  memory.shrinkTo(heldBytes + textBytes);
  if (memory.bytes < heldBytes + textBytes) memory.growAnyway(heldBytes + textBytes - memory.bytes);
}

function jsonPieces(json: string | readonly Buffer[]): readonly Buffer[] {
  return typeof json === "string" ? [Buffer.from(json, "latin1")] : json;
}

function inferenceRequest(decoded: DecodedBody, target: ModelTarget, exchange: Exchange): InferenceRequest {
  const { header, tensors } = decoded;
  return {
    id: header.id,
    namespace: target.namespace,
    modelName: target.modelName,
    modelVersion: target.modelVersion,
    inputs: tensors,
    requestedOutputs: header.outputs === null ? null : header.outputs.map((output) => output.name),
    parameters: header.parameters,
    sequence: header.sequence,
    priority: header.priority,
    queueTimeoutUs: header.queueTimeoutUs,
    receivedNs: exchange.receivedNs,
    deadlineNs: deadlineFromNow(exchange.clock, header.queueTimeoutUs),
    caller: null,
    trace: null,
    signal: exchange.signal,
  };
}

/** Errors about the body that Triton tells before it looks for JSON. */
const plainBodyErrors = ["nothing to be decompressed", "Decompressed data size", "failed to decompress"] as const;

/**
 * Whether Triton refused the request (reply of type application/json) rather than that its answer was an error
 * (text/plain): the checks of its core have these beginnings.
 */
export function isRequestError(error: InferenceError): boolean {
  return requestErrors.some((start) => error.message.startsWith(start));
}

const requestErrors = ["[request id: ", "unexpected inference input '", "unexpected inference output '"] as const;
