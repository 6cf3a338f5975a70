import { ByteLease, InferenceError, type ByteBudget, type Clock } from "../../base/index.ts";
import { labelsOf, type Engine, type ServedModel } from "../../engine/index.ts";
import { releaseResponse, type InferenceResponse } from "../../inference/index.ts";
import { GrpcError, type Call, type CallReceiver, type MessageSink } from "../grpc-listener/index.ts";
import { IncomingInference } from "./incoming-inference.ts";
import { decodeInferRequest, type DecodedRequest } from "./infer-request.ts";
import { ResponseWriter } from "./infer-response.ts";
import { emptyResponse, InferStream, withFinalFlag, type StreamedAnswer } from "./infer-stream.ts";

export interface InferenceServiceOptions {
  readonly engine: Engine;
  /** Metadata whose whole name matches becomes request parameters; null: none. */
  readonly forwardedHeaders: RegExp | null;
  readonly budget: ByteBudget;
  readonly clock: Clock;
}

/** The two inference methods: one answer to one request, and a stream of requests and answers. */
export class InferenceService {
  readonly #engine: Engine;
  readonly #forwardedHeaders: RegExp | null;
  readonly #budget: ByteBudget;
  readonly #clock: Clock;
  readonly #writer = new ResponseWriter();

  constructor({ engine, forwardedHeaders, budget, clock }: InferenceServiceOptions) {
    this.#engine = engine;
    this.#forwardedHeaders = forwardedHeaders;
    this.#budget = budget;
    this.#clock = clock;
  }

  /** ModelInfer. */
  modelInfer(call: Call): void {
    call.receive(
      new OneRequest((byteLength) => {
        const message = this.#message(byteLength, () => {
          this.#answer(call, message).catch((error: unknown) => call.fail(error));
        });
        call.onClosed(() => message[Symbol.dispose]());
        return message;
      }),
    );
  }

  /** ModelStreamInfer. */
  modelStreamInfer(call: Call): void {
    const stream = new InferStream(call, this.#writer, {
      infer: (message, answer) => this.#inStream(call, message, answer),
      answers: (message, give) => this.#answersInStream(call, message, give),
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

  async #answer(call: Call, message: IncomingInference): Promise<void> {
    const { model } = message;
    if (model.view.config.decoupled)
      throw new InferenceError(
        "UNSUPPORTED",
        "ModelInfer RPC doesn't support models with decoupled transaction policy",
      );
    const decoded = this.#decode(call, message);
    const response = await model.infer(decoded.request);
    const pieces = this.#pieces(model, decoded, response);
    await call.sendCompressed(pieces, () => releaseResponse(response));
    call.finish("OK");
  }

  /** The pieces of the answer to one request of a stream. */
  async #inStream(
    call: Call,
    message: IncomingInference,
    answer: (response: InferenceResponse) => InferenceResponse,
  ): Promise<{ pieces: Uint8Array[]; response: InferenceResponse }> {
    const { model } = message;
    const decoded = this.#decode(call, message);
    const response = await model.infer(decoded.request);
    return { pieces: this.#pieces(model, decoded, answer(response)), response };
  }

  /** Gives the answers of a decoupled model to one request, as they come; resolves with the last. */
  async #answersInStream(
    call: Call,
    message: IncomingInference,
    give: (answer: StreamedAnswer, isFinal: boolean, taken: () => void) => void,
  ): Promise<void> {
    const { model } = message;
    const decoded = this.#decode(call, message);
    const { request, wantsEmptyFinalResponse } = decoded;
    await model.stream(request, {
      respond: (outcome, isFinal, taken) => {
        if (outcome === null && !wantsEmptyFinalResponse) return;
        if (outcome instanceof InferenceError) return give({ error: outcome }, isFinal, taken);
        const response = withFinalFlag(outcome ?? emptyResponse(request.modelName), isFinal);
        try {
          give({ pieces: this.#pieces(model, decoded, response), response }, isFinal, taken);
        } catch (error) {
          give({ error }, isFinal, taken);
        }
      },
    });
  }

  #decode(call: Call, message: IncomingInference): DecodedRequest {
    const { model, receivedNs } = message;
    const { signal } = call;
    const forwarded = this.#forwarded(call);
    return decodeInferRequest(message.take(), { model, signal, clock: this.#clock, receivedNs, forwarded });
  }

  #forwarded(call: Call): readonly (readonly [string, string])[] {
    const pattern = this.#forwardedHeaders;
    if (pattern === null) return [];
    return Object.entries(call.headers).flatMap(([name, value]) =>
      typeof value === "string" && !name.startsWith(":") && pattern.test(name) ? [[name, value] as const] : [],
    );
  }

  /** Releases the response where it cannot be written. */
  #pieces(model: ServedModel, { request, classCounts }: DecodedRequest, response: InferenceResponse): Uint8Array[] {
    try {
      return this.#writer.response(response, {
        id: request.id,
        classCounts,
        labelsOf: (output) => labelsOf(model.view, output),
        batches: () => model.view.config.maxBatchSize > 0,
      });
    } catch (error) {
      releaseResponse(response);
      throw error;
    }
  }
}

/** The receiver of a method that takes one request. */
class OneRequest implements CallReceiver {
  readonly #open: (byteLength: number) => MessageSink;
  #hasBegun = false;

  constructor(open: (byteLength: number) => MessageSink) {
    this.#open = open;
  }

  begin(byteLength: number): MessageSink {
    if (this.#hasBegun) throw new GrpcError("INTERNAL", "the method takes one request message, and got another");
    this.#hasBegun = true;
    return this.#open(byteLength);
  }

  halfClosed(): void {
    if (!this.#hasBegun) throw new GrpcError("INTERNAL", "the method takes one request message, and got none");
  }
}
