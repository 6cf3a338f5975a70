import type { IncomingHttpHeaders } from "node:http";
import type { InferenceError, EventLoopQueue } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import type { InferenceResponse, ParameterValue } from "../../inference/index.ts";
import type { Tensor } from "../../tensor/index.ts";

/** The headers of a payload; "" when absent. */
export interface PayloadHead {
  readonly contentType: string;
  readonly accept: string;
  readonly headers: IncomingHttpHeaders;
}

export type PayloadQuestion = "invocation" | "execution-parameters";

/** The body of a call. */
export interface CallPayload extends PayloadHead {
  /** The kind of call: an invocation, or GET /execution-parameters, which has no body. */
  readonly asks: PayloadQuestion;
  readonly bytes: Uint8Array;
  /** The bytes as the only element of a BYTES tensor of shape [1], in the model's arena: no copy when the model takes it. */
  readonly tensor: Tensor;
  /** Yields to the event loop during long work on the bytes. */
  readonly loopQueue: EventLoopQueue;
  readonly signal: AbortSignal;
}

/**
 * The call of the model. The codec passes the ownership of the tensors on. `payload.tensor`, under any name and shape, may be one of
 * them.
 */
export interface PayloadRequest {
  readonly inputs: readonly Tensor[];
  readonly parameters: ReadonlyMap<string, ParameterValue>;
}

export interface PayloadReply {
  /** 200 to 599. */
  readonly status: number;
  /** Empty for none. */
  readonly contentType: string;
  /** Headers besides type and length: name, value, name, value. Values must be valid in a header. */
  readonly headers?: readonly string[];
  /** A text of Latin-1 characters, or bytes, which may be a view of an output: the output is kept until they were sent. */
  readonly body: string | Uint8Array;
}

/** Thrown by a codec to respond without calling the model. */
export class PayloadRefusal extends Error {
  readonly reply: PayloadReply;

  constructor(reply: PayloadReply) {
    super(`answered with ${reply.status}`);
    this.reply = reply;
  }
}

/**
 * The format of a kind of container other than Triton's: converts a body of some content type to a model's inputs, and outputs to a body
 * of an accepted type. The routes, loading, memory and limits are common to all kinds, and not part of it.
 */
export interface PayloadCodec {
  /** Throws PayloadRefusal, or InferenceError for `failed`; before it throws, it releases its own allocations. */
  decode(payload: CallPayload, model: ServedModel): PayloadRequest | Promise<PayloadRequest>;
  /** The caller still owns the response. */
  encode(response: InferenceResponse, head: PayloadHead, model: ServedModel): PayloadReply | Promise<PayloadReply>;
  /** Returns the response for an error of the engine, or the model. */
  failed(error: InferenceError): PayloadReply;
  /**
   * The response to GET /execution-parameters; null: 404, so that a transform job uses its defaults; "model": the response of the
   * container's model, called with an empty body, which may itself be 404.
   */
  readonly executionParameters: PayloadReply | "model" | null;
}
