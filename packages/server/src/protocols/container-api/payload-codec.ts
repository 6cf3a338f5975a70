import type { IncomingHttpHeaders } from "node:http";
import type { InferenceError, EventLoopQueue } from "@galatea/base";
import type { ServedModel } from "../../engine/index.ts";
import type { InferenceResponse, ParameterValue } from "../../inference/index.ts";
import type { Tensor } from "../../tensor/index.ts";

/** Content type and accepted type of a payload; "" when the header is absent. */
export interface PayloadHead {
  readonly contentType: string;
  readonly accept: string;
  readonly headers: IncomingHttpHeaders;
}

export type PayloadCallKind = "invocation" | "execution-parameters";

/** The body of a call. */
export interface CallPayload extends PayloadHead {
  /** The kind of the call: an invocation, or GET /execution-parameters, which has no body. */
  readonly callKind: PayloadCallKind;
  readonly bytes: Uint8Array;
  /** The body as the only element of a BYTES tensor of shape [1] in the model's arena; passing it to the model needs no copy. */
  readonly tensor: Tensor;
  /** Lets a codec yield to the event loop during long work on the body. */
  readonly loopQueue: EventLoopQueue;
  readonly signal: AbortSignal;
}

/**
 * The request that a codec sends to the model. The codec transfers the ownership of the tensors. One of them may be `payload.tensor`, under
 * any name and shape.
 */
export interface PayloadRequest {
  readonly inputs: readonly Tensor[];
  readonly parameters: ReadonlyMap<string, ParameterValue>;
}

export interface PayloadReply {
  /** HTTP status, 200 to 599. */
  readonly status: number;
  /** Content type; "" for none. */
  readonly contentType: string;
  /** Other headers as a flat list: name, value, name, value. Values must be valid header values. */
  readonly headers?: readonly string[];
  /**
   * The body: text of Latin-1 characters, or bytes. Bytes may refer to an output of the model, because outputs are released only after the
   * body was sent.
   */
  readonly body: string | Uint8Array;
}

/** The error that a codec throws to send a response without calling the model. */
export class PayloadErrorResponse extends Error {
  readonly reply: PayloadReply;

  constructor(reply: PayloadReply) {
    super(`answered with ${reply.status}`);
    this.reply = reply;
  }
}

/**
 * The body format of a container other than Triton's: converts a request body to the model's inputs, and the model's outputs to a response
 * body. Routes, loading, memory and limits are the same for all containers.
 */
export interface PayloadCodec {
  /**
   * Converts a request body to a request. Throws PayloadErrorResponse, or an InferenceError, which the caller passes to `failed`. Releases
   * its own allocations before it throws.
   */
  decode(payload: CallPayload, model: ServedModel): PayloadRequest | Promise<PayloadRequest>;
  /** Converts the model's response to a body. The caller still owns the response. */
  encode(response: InferenceResponse, head: PayloadHead, model: ServedModel): PayloadReply | Promise<PayloadReply>;
  /** Returns the reply for an error of the engine or the model. */
  failed(error: InferenceError): PayloadReply;
  /**
   * The reply to GET /execution-parameters. Null sends 404, and batch transform uses its defaults. "model" calls the container's model with
   * an empty body and sends its response.
   */
  readonly executionParameters: PayloadReply | "model" | null;
}
