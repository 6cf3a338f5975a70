import { noParameters, releaseResponse, type InferenceResponse } from "../../inference/index.ts";
import { grpcStatusOf, type Call, type MessageSink } from "../grpc-listener/index.ts";
import type { IncomingInference } from "./incoming-inference.ts";
import type { ResponseWriter } from "./infer-response.ts";

/** Maximum number of concurrent requests of one stream; with more, the client is not read until some have ended. */
const streamRequestsMax = 256;

/** An encoded response, to be released when its chunks were sent. */
interface WrittenAnswer {
  readonly pieces: Uint8Array[];
  readonly response: InferenceResponse;
}

/** `isRefused`: the request did not reach the model. */
export type StreamedAnswer = WrittenAnswer | { readonly error: unknown; readonly isRefused?: true };

/** Executes the requests of a stream. */
export interface StreamedInference {
  /** Calls a model that sends one response, which is encoded after `answer` has transformed it. Rejects when the model was not called. */
  infer(
    message: IncomingInference,
    answer: (response: InferenceResponse) => InferenceResponse,
  ): Promise<StreamedAnswer>;
  /** Calls a decoupled model. `taken` of a response is called when the client has read it. Rejects when the model was not called. */
  answers(
    message: IncomingInference,
    give: (answer: StreamedAnswer, isFinal: boolean, taken: () => void) => void,
  ): Promise<void>;
}

/**
 * Sends responses in the order of their requests, including errors; those of decoupled models in order of arrival. The stream continues
 * after an error, unless it is a model's and the client selects the call's status for these (`triton_grpc_error`).
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
  /** The last of the responses in request order. */
  #lastInOrder: Promise<void> = Promise.resolve();
  /** The last write: one at a time. */
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
    const answered = isDecoupled(message) ? this.#giveAll(message) : this.#giveInOrder(message);
    void answered
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

  /** Sends the only response, in request order. */
  #giveInOrder(message: IncomingInference): Promise<void> {
    const inferring = this.#inference.infer(message, (response) => withFinalFlag(response, true));
    // Awaited in request order; until then nothing else handles its failure.
    inferring.catch(() => {});
    const given = this.#lastInOrder.then(async () => {
      const answer = await inferring.catch((error: unknown): StreamedAnswer => ({ error, isRefused: true }));
      await this.#write(message, answer, true);
    });
    this.#lastInOrder = given.catch(() => {});
    return given;
  }

  /** Sends any number of responses in order of arrival. Resolves when all were sent. */
  async #giveAll(message: IncomingInference): Promise<void> {
    let last: Promise<void> = Promise.resolve();
    try {
      await this.#inference.answers(message, (answer, isFinal, taken) => {
        last = this.#write(message, answer, isFinal).finally(taken);
        last.catch((error: unknown) => this.#call.fail(error));
      });
    } catch (error) {
      last = this.#write(message, { error, isRefused: true }, true);
    }
    await last;
  }

  /** Resolves when the client has read the response, or nothing waits for it any more. */
  #write(message: IncomingInference, answer: StreamedAnswer, isFinal: boolean): Promise<void> {
    const written = this.#lastWrite.then(async () => {
      const taken = "error" in answer ? await this.#tellError(answer, message, isFinal) : await this.#send(answer);
      if (!taken) await this.#call.drained();
    });
    this.#lastWrite = written.catch(() => {});
    return written;
  }

  #send({ pieces, response }: WrittenAnswer): Promise<boolean> {
    return this.#call.sendCompressed(this.#writer.inStream(pieces), () => releaseResponse(response));
  }

  #tellError(
    { error: thrown, isRefused }: { readonly error: unknown; readonly isRefused?: true },
    { of: { modelName, id } }: IncomingInference,
    isFinal: boolean,
  ): boolean | Promise<boolean> {
    if (this.#endsAtError && isRefused !== true) {
      this.#call.fail(thrown);
      return true;
    }
    const empty = withFinalFlag(emptyResponse(modelName), isFinal);
    const pieces = this.#writer.errorInStream(grpcStatusOf(thrown).message, empty, id);
    return this.#call.sendCompressed(pieces, () => {});
  }

  #ended(): void {
    if (this.#underWay-- === streamRequestsMax) this.#call.resume();
    if (this.#isHalfClosed && this.#underWay === 0) this.#call.finish("OK");
  }
}

/** Returns whether the model is decoupled. A request for an unknown model has one response, in request order. */
function isDecoupled(message: IncomingInference): boolean {
  try {
    return message.model.view.config.decoupled;
  } catch {
    return false;
  }
}

/** Returns Triton's empty response, without the version. */
export function emptyResponse(modelName: string): InferenceResponse {
  return { modelName, modelVersion: "", outputs: [], parameters: noParameters };
}

/** Adds the parameter that tells whether a response of a stream is the last of its request. */
export function withFinalFlag(response: InferenceResponse, isFinal: boolean): InferenceResponse {
  return { ...response, parameters: new Map([...response.parameters, ["triton_final_response", isFinal]]) };
}
