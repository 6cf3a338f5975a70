import { InferenceError, EventLoopQueue, Semaphore } from "@galatea/base";
import { outputLabels } from "../../engine/index.ts";
import { releaseResponse, type InferenceResponse } from "../../inference/index.ts";
import { releaseTensors } from "../../tensor/index.ts";
import { withForwardedHeaders } from "../forwarded-headers.ts";
import { largeInflationsMax } from "../inflation-slot.ts";
import {
  discardChunks,
  exchangeMemoryBytes,
  reply,
  replyChunks,
  type Exchange,
  type HttpLimits,
} from "../http-listener/index.ts";
import {
  jsonTextBytesMax,
  ResponseEncoder,
  wholeTextBytesMax,
  type EncodedResponse,
  type EncodeOptions,
} from "../infer-codec/index.ts";
import { toBodyError, toCallError, InferCallError, inferenceRequest, type CallRequest } from "./call-request.ts";
import { compress, type ResponseEncoding } from "./compression.ts";
import { readInferBody, type DecodedBody } from "./infer-body.ts";
import { setTextMemory, reserveTextMemory } from "./text-memory.ts";

export interface InferCallOptions {
  readonly limits: HttpLimits;
  /** Pattern of the names of headers that become parameters of the request; absent or null for none. */
  readonly forwardedHeaders?: RegExp | null;
  /** Returns the headers of a response with a JSON header of `jsonBytes` bytes and binary outputs. */
  readonly binaryHeaders: (jsonBytes: number) => string[];
}

export interface InferCallRequest extends CallRequest {
  readonly encoding: ResponseEncoding;
}

function decoupled(): InferenceError {
  return new InferenceError("UNSUPPORTED", "HTTP end point doesn't support models with decoupled transaction policy");
}

/** Bodies up to this size are joined to one buffer, which is cheaper than several writes. */
const joinedBytesMax = 16 * 1024;

/**
 * Handles inferences over HTTP, from the parsed request line and headers to the response. Throws InferCallError (nothing was sent) or
 * BodyError (which the listener sends).
 */
export class InferCalls {
  readonly #options: InferCallOptions;
  readonly #encoder = new ResponseEncoder();
  readonly #loopQueue = new EventLoopQueue();
  readonly #inflations = new Semaphore(largeInflationsMax);

  constructor(options: InferCallOptions) {
    this.#options = options;
  }

  async respond(exchange: Exchange, request: InferCallRequest): Promise<void> {
    const { limits } = this.#options;
    const { target, model, headerBytes, compressed } = request;
    if (model.view.config.decoupled) throw new InferCallError(decoupled(), "text/plain");
    let decoded: DecodedBody;
    try {
      const bounds = { limits, loopQueue: this.#loopQueue, inflations: this.#inflations };
      decoded = await readInferBody(exchange, { model, headerBytes, compressed, ...bounds });
      decoded = this.#withHeaders(exchange, decoded);
    } catch (error) {
      throw toBodyError(error);
    }
    let response: InferenceResponse;
    try {
      response = await model.infer(inferenceRequest(decoded, target, exchange));
    } catch (error) {
      throw toCallError(error);
    }
    const replied = this.#reply(exchange, request, decoded, response);
    if (replied !== undefined) await replied;
  }

  /** Adds forwarded headers to the parameters. Releases the tensors when a header cannot be forwarded. */
  #withHeaders(exchange: Exchange, decoded: DecodedBody): DecodedBody {
    const { forwardedHeaders = null } = this.#options;
    if (forwardedHeaders === null) return decoded;
    const { header, tensors } = decoded;
    try {
      const parameters = withForwardedHeaders(header.parameters, exchange.request.rawHeaders, forwardedHeaders);
      return { header: { ...header, parameters }, tensors };
    } catch (error) {
      releaseTensors(tensors);
      throw error;
    }
  }

  /** Sends the response. A short uncompressed text is sent synchronously, which avoids a promise for nearly every request. */
  #reply(
    exchange: Exchange,
    request: InferCallRequest,
    decoded: DecodedBody,
    response: InferenceResponse,
  ): Promise<void> | undefined {
    if (exchange.signal.aborted) {
      releaseResponse(response);
      return undefined;
    }
    const { model } = request;
    const { memory } = exchange;
    const heldBytes = memory.bytes;
    let encoded: EncodedResponse;
    try {
      const textBytesMax = jsonTextBytesMax(response, decoded.header);
      reserveTextMemory(memory, textBytesMax);
      const options = {
        id: decoded.header.id,
        outputs: decoded.header.outputs,
        binaryOutputs: decoded.header.binaryOutputs,
        outputLabels: (output: string) => outputLabels(model.view, output),
        batches: () => model.view.config.maxBatchSize > 0,
      };
      if (textBytesMax > wholeTextBytesMax) return this.#replyLong(exchange, request, { response, options, heldBytes });
      encoded = this.#encoder.encode(response, options);
    } catch (error) {
      throw unprinted(response, error);
    }
    setTextMemory(memory, heldBytes, encoded.jsonBytes);
    return this.#send(exchange, request, encoded, response);
  }

  /** Sends a long text, printed in chunks with event loop ticks between them. */
  async #replyLong(
    exchange: Exchange,
    request: InferCallRequest,
    { response, options, heldBytes }: LongReply,
  ): Promise<void> {
    let encoded: EncodedResponse;
    try {
      const yieldOptions = { loopQueue: this.#loopQueue, signal: exchange.signal };
      encoded = await this.#encoder.encodeInChunks(response, options, yieldOptions);
    } catch (error) {
      throw unprinted(response, error);
    }
    setTextMemory(exchange.memory, heldBytes, encoded.jsonBytes);
    await this.#send(exchange, request, encoded, response);
  }

  #send(
    exchange: Exchange,
    request: InferCallRequest,
    encoded: EncodedResponse,
    response: InferenceResponse,
  ): Promise<void> | undefined {
    if (request.encoding !== "identity") return this.#replyCompressed(exchange, request.encoding, encoded, response);
    this.#replyPlain(exchange, encoded, response);
    return undefined;
  }

  #replyPlain(exchange: Exchange, encoded: EncodedResponse, response: InferenceResponse): void {
    const { json, jsonBytes, tails } = encoded;
    if (tails === null) {
      releaseResponse(response);
      if (typeof json === "string") return reply(exchange, 200, "application/json", json);
      exchange.onClosed(() => discardChunks(json));
      return replyChunks(exchange, 200, ["Content-Type", "application/json"], json);
    }
    let tailBytes = 0;
    for (const tail of tails) tailBytes += tail.length;
    const headers = tailBytes === 0 ? ["Content-Type", "application/json"] : this.#options.binaryHeaders(jsonBytes);
    const chunks = [...jsonBuffers(json), ...tails];
    if (jsonBytes + tailBytes <= joinedBytesMax) {
      const joined = Buffer.concat(chunks, jsonBytes + tailBytes);
      releaseResponse(response);
      return replyChunks(exchange, 200, headers, [joined]);
    }
    exchange.onClosed(() => releaseResponse(response));
    replyChunks(exchange, 200, headers, chunks);
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
      // Charges the uncompressed copy and the compressed output, which is at most slightly larger than the copy.
      memory.grow(2 * plainBytes);
      body = await compress([...jsonBuffers(json), ...(tails ?? [])], encoding);
    } catch (error) {
      throw new InferCallError(InferenceError.from(error), "text/plain");
    } finally {
      releaseResponse(response);
    }
    if (exchange.signal.aborted) return;
    memory.shrinkTo(Math.min(heldBytes, exchangeMemoryBytes) + body.length);
    const headers = tails === null ? ["Content-Type", "application/json"] : this.#options.binaryHeaders(jsonBytes);
    replyChunks(exchange, 200, [...headers, "Content-Encoding", encoding], [body]);
  }
}

interface LongReply {
  readonly response: InferenceResponse;
  readonly options: EncodeOptions;
  /** Bytes that were charged to the exchange's lease before the text was charged. */
  readonly heldBytes: number;
}

function unprinted(response: InferenceResponse, error: unknown): InferCallError {
  releaseResponse(response);
  return new InferCallError(InferenceError.from(error), "text/plain");
}

function jsonBuffers(json: string | readonly Buffer[]): readonly Buffer[] {
  return typeof json === "string" ? [Buffer.from(json, "latin1")] : json;
}
