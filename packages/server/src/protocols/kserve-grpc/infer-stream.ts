import { noParameters, releaseResponse, type InferenceResponse } from "../../inference/index.ts";
import { grpcStatusOf, type Call, type MessageSink } from "../grpc-listener/index.ts";
import type { IncomingInference } from "./incoming-inference.ts";
import type { ResponseWriter } from "./infer-response.ts";

/** Maximum number of concurrent requests of one stream. At the limit, no further messages are read until some requests have ended. */
const streamRequestsMax = 256;

/** An encoded response. `response` is released after the chunks were sent. */
interface EncodedResult {
  readonly pieces: Uint8Array[];
  readonly response: InferenceResponse;
}

/** An encoded response or an error. `isRefused` is true if the request did not reach the model. */
export type EncodedStreamResponse = EncodedResult | { readonly error: unknown; readonly isRefused?: true };

/** Executes the requests of a stream. */
export interface StreamedInference {
  /** Calls a model that is not decoupled. `response` may change the response before it is encoded. Rejects when the model was not called. */
  infer(
    message: IncomingInference,
    createResponse: (response: InferenceResponse) => InferenceResponse,
  ): Promise<EncodedStreamResponse>;
  /**
   * Calls a decoupled model. The receiver calls `consumed` of a response when the client has read the response. Rejects if the model was not
   * called.
   */
  answers(
    message: IncomingInference,
    give: (response: EncodedStreamResponse, isFinal: boolean, consumed: () => void) => void,
  ): Promise<void>;
}

/**
 * Handles a stream of requests. Responses and errors are sent in the order of the requests, except that responses of decoupled models are
 * sent as they arrive. After an error the stream continues, unless the model has failed and the client has selected a call status for
 * errors of models (`triton_grpc_error`).
 */
export class InferStream {
  readonly #call: Call;
  readonly #writer: ResponseWriter;
  readonly #inference: StreamedInference;
  readonly #endsAtError: boolean;
  /** The request that is being received. */
  #arriving: IncomingInference | null = null;
  #underWay = 0;
  #isHalfClosed = false;
  /** Resolves when the most recent response that is sent in request order was sent. */
  #lastInOrder: Promise<void> = Promise.resolve();
  /** Resolves when the most recent write has ended; only one write runs at a time. */
  #lastWrite: Promise<void> = Promise.resolve();

  constructor(call: Call, writer: ResponseWriter, inference: StreamedInference) {
    this.#call = call;
    this.#writer = writer;
    this.#inference = inference;
    this.#endsAtError = call.headers["triton_grpc_error"] === "true";
    call.onClosed(() => this.#arriving?.[Symbol.dispose]());
  }

  opened(message: IncomingInference): MessageSink {
    this.#arriving = message;
    return message;
  }

  received(message: IncomingInference): void {
    this.#arriving = null;
    if (++this.#underWay >= streamRequestsMax) this.#call.pause();
    const result = isDecoupled(message) ? this.#sendAll(message) : this.#sendInOrder(message);
    void result
      .catch((error: unknown) => this.#call.fail(error))
      .finally(() => {
        message[Symbol.dispose]();
        this.#ended();
      });
  }

  halfClosed(): void {
    this.#isHalfClosed = true;
    if (this.#underWay === 0) this.#call.finish("OK");
  }

  /** Sends the only response to a request, in request order. */
  #sendInOrder(message: IncomingInference): Promise<void> {
    const inferring = this.#inference.infer(message, (response) => withFinalFlag(response, true));
    // A failure is reported when the response is due in request order. This handler only prevents an unhandled rejection.
    inferring.catch(() => {});
    const input = this.#lastInOrder.then(async () => {
      const reply = await inferring.catch((error: unknown): EncodedStreamResponse => ({ error, isRefused: true }));
      await this.#write(message, reply, true);
    });
    this.#lastInOrder = input.catch(() => {});
    return input;
  }

  /** Sends the responses of a decoupled model as they arrive. Resolves when all were sent. */
  async #sendAll(message: IncomingInference): Promise<void> {
    let last: Promise<void> = Promise.resolve();
    try {
      await this.#inference.answers(message, (reply, isFinal, consumed) => {
        last = this.#write(message, reply, isFinal).finally(consumed);
        last.catch((error: unknown) => this.#call.fail(error));
      });
    } catch (error) {
      last = this.#write(message, { error, isRefused: true }, true);
    }
    await last;
  }

  /** Writes a response or an error. Resolves when the client has read it, or the call has ended. */
  #write(message: IncomingInference, reply: EncodedStreamResponse, isFinal: boolean): Promise<void> {
    const written = this.#lastWrite.then(async () => {
      const isUsed = "error" in reply ? await this.#sendError(reply, message, isFinal) : await this.#send(reply);
      if (!isUsed) await this.#call.drained();
    });
    this.#lastWrite = written.catch(() => {});
    return written;
  }

  #send({ pieces, response }: EncodedResult): Promise<boolean> {
    return this.#call.sendCompressed(this.#writer.inStream(pieces), () => releaseResponse(response));
  }

  #sendError(
    { error: thrown, isRefused }: { readonly error: unknown; readonly isRefused?: true },
    { of: { modelName, id } }: IncomingInference,
    isFinal: boolean,
  ): boolean | Promise<boolean> {
    if (this.#endsAtError && isRefused !== true) {
      this.#call.fail(thrown);
      return true;
    }
    const empty = withFinalFlag(emptyResponse(modelName), isFinal);
    const chunks = this.#writer.errorInStream(grpcStatusOf(thrown).message, empty, id);
    return this.#call.sendCompressed(chunks, () => {});
  }

  #ended(): void {
    if (this.#underWay-- === streamRequestsMax) this.#call.resume();
    if (this.#isHalfClosed && this.#underWay === 0) this.#call.finish("OK");
  }
}

/** Returns whether the model is decoupled. For an unknown model, returns false, so that the error is sent in request order. */
function isDecoupled(message: IncomingInference): boolean {
  try {
    return message.model.view.config.decoupled;
  } catch {
    return false;
  }
}

/** Returns Triton's empty response, which has no model version. */
export function emptyResponse(modelName: string): InferenceResponse {
  return { modelName, modelVersion: "", outputs: [], parameters: noParameters };
}

/** Adds the parameter `triton_final_response`, which marks the last response of a request. */
export function withFinalFlag(response: InferenceResponse, isFinal: boolean): InferenceResponse {
  return { ...response, parameters: new Map([...response.parameters, ["triton_final_response", isFinal]]) };
}
