import { ByteLease, InferenceError, EventLoopQueue, SerialQueue, type ByteBudget, type Clock } from "@galatea/base";
import { outputLabels, type Engine, type ServedModel } from "../../engine/index.ts";
import { releaseResponse, type InferenceResponse } from "../../inference/index.ts";
import { GrpcError, type Call, type CallReceiver, type MessageSink } from "../grpc-listener/index.ts";
import { IncomingInference } from "./incoming-inference.ts";
import { decodeInferRequest, decodeInChunks, isLongMessage, type DecodedRequest } from "./infer-request.ts";
import type { ForwardedHeaders } from "./infer-parameters.ts";
import { ResponseWriter } from "./infer-response.ts";
import { emptyResponse, InferStream, withFinalFlag, type EncodedStreamResponse } from "./infer-stream.ts";

export interface InferenceServiceOptions {
  readonly engine: Engine;
  /** Pattern of the names of metadata that become request parameters; null for none. */
  readonly forwardedHeaders: RegExp | null;
  readonly budget: ByteBudget;
  readonly clock: Clock;
}

type Decode = (message: IncomingInference) => DecodedRequest | Promise<DecodedRequest>;

/** The methods ModelInfer (one request, one response) and ModelStreamInfer (a stream of both). */
export class InferenceService {
  readonly #engine: Engine;
  readonly #forwardedHeaders: RegExp | null;
  readonly #budget: ByteBudget;
  readonly #clock: Clock;
  readonly #writer = new ResponseWriter();
  /** Lets decoders yield to the event loop while they read long messages. */
  readonly #loopQueue = new EventLoopQueue();

  constructor({ engine, forwardedHeaders, budget, clock }: InferenceServiceOptions) {
    this.#engine = engine;
    this.#forwardedHeaders = forwardedHeaders;
    this.#budget = budget;
    this.#clock = clock;
  }

  /** Handles ModelInfer. */
  modelInfer(call: Call): void {
    call.receive(
      new OneRequest((byteLength) => {
        const message = this.#message(byteLength, () => {
          this.#sendResponse(call, message).catch((error: unknown) => call.fail(error));
        });
        call.onClosed(() => message[Symbol.dispose]());
        return message;
      }),
    );
  }

  /** Handles ModelStreamInfer. */
  modelStreamInfer(call: Call): void {
    // Calls the models in the order in which the client sent the requests, even if an earlier request takes longer to decode.
    const order = new SerialQueue();
    const decode = (message: IncomingInference) =>
      order.count === 0 && !message.isLong
        ? this.#decode(call, message)
        : order.run(async () => await this.#decode(call, message));
    const stream = new InferStream(call, this.#writer, {
      infer: (message, createResponse) => this.#inStream(message, decode, createResponse),
      answers: (message, give) => this.#inferStreamed(message, decode, give),
    });
    call.receive({
      begin: (byteLength) => {
        const message = this.#message(byteLength, () => stream.received(message));
        return stream.opened(message);
      },
      halfClosed: () => stream.halfClosed(),
    });
  }

  #message(byteLength: number, done: () => void): IncomingInference {
    const memory = new ByteLease(this.#budget);
    return new IncomingInference({ byteLength, done, engine: this.#engine, clock: this.#clock, memory });
  }

  async #sendResponse(call: Call, message: IncomingInference): Promise<void> {
    const { model } = message;
    if (model.view.config.decoupled)
      throw new InferenceError(
        "UNSUPPORTED",
        "ModelInfer RPC doesn't support models with decoupled transaction policy",
      );
    const decoding = this.#decode(call, message);
    const decoded = decoding instanceof Promise ? await decoding : decoding;
    const response = await model.infer(decoded.request);
    const chunks = this.#chunks(model, decoded, response);
    await call.sendCompressed(chunks, () => releaseResponse(response));
    call.finish("OK");
  }

  /** Runs one request of a stream and returns the encoded response. */
  async #inStream(
    message: IncomingInference,
    decode: Decode,
    createResponse: (response: InferenceResponse) => InferenceResponse,
  ): Promise<EncodedStreamResponse> {
    const { model } = message;
    const decoding = decode(message);
    const decoded = decoding instanceof Promise ? await decoding : decoding;
    let response: InferenceResponse;
    try {
      response = await model.infer(decoded.request);
    } catch (error) {
      if (error instanceof InferenceError && error.reason === "request-refused") throw error;
      return { error };
    }
    return { pieces: this.#chunks(model, decoded, createResponse(response)), response };
  }

  /** Sends the responses of a decoupled model as they arrive. Resolves after the last one. */
  async #inferStreamed(
    message: IncomingInference,
    decode: Decode,
    give: (result: EncodedStreamResponse, isFinal: boolean, consumed: () => void) => void,
  ): Promise<void> {
    const { model } = message;
    const decoding = decode(message);
    const decoded = decoding instanceof Promise ? await decoding : decoding;
    const { request, wantsEmptyFinalResponse } = decoded;
    await model.stream(request, {
      respond: (outcome, isFinal, consumed) => {
        if (outcome === null && !wantsEmptyFinalResponse) return;
        if (outcome instanceof InferenceError) return give({ error: outcome }, isFinal, consumed);
        const response = withFinalFlag(outcome ?? emptyResponse(request.modelName), isFinal);
        try {
          give({ pieces: this.#chunks(model, decoded, response), response }, isFinal, consumed);
        } catch (error) {
          give({ error }, isFinal, consumed);
        }
      },
    });
  }

  /** Decodes a message. A short message is decoded synchronously, which avoids a promise for nearly every request. */
  #decode(call: Call, message: IncomingInference): DecodedRequest | Promise<DecodedRequest> {
    const { model, receivedNs } = message;
    const { signal } = call;
    const options = { model, signal, clock: this.#clock, receivedNs, forwarded: this.#forwarded(call) };
    const acquired = message.take();
    return isLongMessage(acquired)
      ? decodeInChunks(acquired, options, this.#loopQueue)
      : decodeInferRequest(acquired, options);
  }

  #forwarded({ headers }: Call): ForwardedHeaders {
    const pattern = this.#forwardedHeaders;
    if (pattern === null) return { rawHeaders: [], pattern };
    const rawHeaders = Object.entries(headers).flatMap(([name, value]) =>
      typeof value === "string" && !name.startsWith(":") ? [name, value] : [],
    );
    return { rawHeaders, pattern };
  }

  /** Encodes a response. Releases the response when it cannot be encoded. */
  #chunks(model: ServedModel, { request, classCounts }: DecodedRequest, response: InferenceResponse): Uint8Array[] {
    try {
      return this.#writer.response(response, {
        id: request.id,
        classCounts,
        outputLabels: (output) => outputLabels(model.view, output),
        batches: () => model.view.config.maxBatchSize > 0,
      });
    } catch (error) {
      releaseResponse(response);
      throw error;
    }
  }
}

/** Receives the request of a method that has exactly one request message. */
class OneRequest implements CallReceiver {
  readonly #open: (byteLength: number) => MessageSink;
  #hasStarted = false;

  constructor(open: (byteLength: number) => MessageSink) {
    this.#open = open;
  }

  begin(byteLength: number): MessageSink {
    if (this.#hasStarted)
      throw new GrpcError("INTERNAL", "the method takes one request message; a second one was sent");
    this.#hasStarted = true;
    return this.#open(byteLength);
  }

  halfClosed(): void {
    if (!this.#hasStarted) throw new GrpcError("INTERNAL", "the method takes one request message; none was sent");
  }
}
