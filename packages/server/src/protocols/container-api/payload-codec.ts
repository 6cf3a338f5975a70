import type { IncomingHttpHeaders } from "node:http";
import type { InferenceError, EventLoopQueue } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import type { InferenceResponse, ParameterValue } from "../../inference/index.ts";
import type { Tensor } from "../../tensor/index.ts";

/** What is said of a payload beside its bytes. Headers that were not sent are "". */
export interface PayloadHead {
  readonly contentType: string;
  readonly accept: string;
  readonly headers: IncomingHttpHeaders;
}

export type PayloadQuestion = "invocation" | "execution-parameters";

/** The body of a call. */
export interface CallPayload extends PayloadHead {
  /** Whether it is a call of the model, or GET /execution-parameters, which has no body. */
  readonly asks: PayloadQuestion;
  readonly bytes: Uint8Array;
  /** The same bytes as the only element of a BYTES tensor of shape [1], in the model's arena: nothing is copied where the model takes it. */
  readonly tensor: Tensor;
  /** Between the pieces of long work on the bytes. */
  readonly loopQueue: EventLoopQueue;
  readonly signal: AbortSignal;
}

/** What the model is asked: the codec gives the tensors away. `payload.tensor`, under whatever name and shape, may be one of them. */
export interface PayloadRequest {
  readonly inputs: readonly Tensor[];
  readonly parameters: ReadonlyMap<string, ParameterValue>;
}

export interface PayloadReply {
  /** 200 to 599. */
  readonly status: number;
  /** "" for none. */
  readonly contentType: string;
  /** Beside type and length: name, value, name, value. Each is text that a header may hold. */
  readonly headers?: readonly string[];
  /** A text of Latin-1 characters, or bytes, which may be a view of an output: it is held until the bytes have left. */
  readonly body: string | Uint8Array;
}

/** Thrown by a codec where what came is answered without asking the model. */
export class PayloadRefusal extends Error {
  readonly reply: PayloadReply;

  constructor(reply: PayloadReply) {
    super(`answered with ${reply.status}`);
    this.reply = reply;
  }
}

/**
 * The language of a kind of container, other than Triton's: how a body of some content type becomes inputs of a model, and outputs a body
 * of a type that is accepted. What is common to all kinds (the routes, loading, memory, limits) is not its concern.
 */
export interface PayloadCodec {
  /** Throws PayloadRefusal, or InferenceError for `failed`. What it has allocated by then is its own to release. */
  decode(payload: CallPayload, model: ServedModel): PayloadRequest | Promise<PayloadRequest>;
  /** The response stays the caller's. */
  encode(response: InferenceResponse, head: PayloadHead, model: ServedModel): PayloadReply | Promise<PayloadReply>;
  /** The answer where the engine, or the model, gave an error. */
  failed(error: InferenceError): PayloadReply;
  /**
   * The answer to GET /execution-parameters; null: 404, which leaves a transform job to its defaults; "model": what the container's model
   * answers, which is asked with an empty body and may answer 404 itself.
   */
  readonly executionParameters: PayloadReply | "model" | null;
}
