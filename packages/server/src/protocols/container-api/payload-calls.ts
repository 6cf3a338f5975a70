import { InferenceError, EventLoopQueue } from "@galatea/base";
import type { Engine, ModelTarget, ServedModel } from "../../engine/index.ts";
import {
  releaseResponse,
  newInferenceRequest,
  type InferenceRequest,
  type InferenceResponse,
} from "../../inference/index.ts";
import { BodyError, reply, replyChunks, ReplyStream, type Exchange, type HttpLimits } from "../http-listener/index.ts";
import { disposableOutcome, ResponseIterator } from "../infer-http/index.ts";
import type { CallRoute, ContainerCalls, OpenAiContainerCall } from "./container-calls.ts";
import { readPayload } from "./payload-body.ts";
import {
  PayloadErrorResponse,
  type CallPayload,
  type PayloadCodec,
  type PayloadHead,
  type PayloadCallKind,
  type PayloadReply,
  type PayloadRequest,
} from "./payload-codec.ts";

export interface PayloadCallsOptions {
  readonly engine: Engine;
  readonly limits: HttpLimits;
  readonly codec: PayloadCodec;
}

/** Response bodies up to this size are copied, so that the model's output can be released at once. */
const copiedBytesMax = 16 * 1024;

/** Status of the multi-model API for a lack of memory. The platform then unloads other models and sends the call again. */
const insufficientStorage = 507;

/** Handles the calls of containers whose body format a payload codec defines. */
export class PayloadCalls implements ContainerCalls {
  readonly executionParameters: ContainerCalls["executionParameters"];
  readonly #options: PayloadCallsOptions;
  readonly #loopQueue = new EventLoopQueue();

  constructor(options: PayloadCallsOptions) {
    this.#options = options;
    const { executionParameters: parameters } = options.codec;
    this.executionParameters =
      parameters === null
        ? null
        : parameters === "model"
          ? (exchange, target) =>
              this.#sendRawRequest(exchange, target, { route: "invocations", asks: "execution-parameters" })
          : (exchange) => send(exchange, parameters, null);
  }

  respond(exchange: Exchange, target: ModelTarget, route: CallRoute): Promise<void> {
    return this.#sendRawRequest(exchange, target, { route, asks: "invocation" });
  }

  /** Handles a call of the OpenAI API like one of /invocations: the codec or the model interprets the body. */
  openAi(exchange: Exchange, { target, route }: OpenAiContainerCall): Promise<void> {
    return this.respond(exchange, target, route);
  }

  async #sendRawRequest(
    exchange: Exchange,
    target: ModelTarget,
    { route, asks }: { readonly route: CallRoute; readonly asks: PayloadCallKind },
  ): Promise<void> {
    let response: InferenceResponse | null = null;
    try {
      using model = this.#options.engine.open(target);
      const head = headOf(exchange);
      if (model.view.config.decoupled) return await this.#stream(exchange, { target, model, head, callKind: asks });
      response = await this.#infer(exchange, { target, model, head, callKind: asks });
      const result = await this.#options.codec.encode(response, head, model);
      send(exchange, result, response);
      response = null;
    } catch (thrown) {
      if (response !== null) releaseResponse(response);
      if (thrown instanceof BodyError) throw thrown;
      if (exchange.signal.aborted) return;
      if (thrown instanceof PayloadErrorResponse) send(exchange, thrown.reply, null);
      else this.refuse(exchange, InferenceError.from(thrown), route);
    }
  }

  refuse(exchange: Exchange, error: InferenceError, route: CallRoute): void {
    const result = this.#options.codec.failed(error);
    const isCured = route === "invoke" && error.reason === "out-of-memory";
    send(exchange, isCured ? { ...result, status: insufficientStorage } : result, null);
  }

  /**
   * Sends each response of the model as a chunk of one HTTP response. The first one sets the status and headers. A later error closes the
   * connection before the end of the HTTP response.
   */
  async #stream(exchange: Exchange, call: PayloadCall): Promise<void> {
    const { model, head } = call;
    let stream: ReplyStream | null = null;
    for await (const outcome of new ResponseIterator(model, await this.#request(exchange, call))) {
      using result = disposableOutcome(outcome);
      if (exchange.signal.aborted) return;
      if (result.outcome instanceof InferenceError) {
        if (stream === null) throw result.outcome;
        // Sends the bytes written so far, then closes the connection, which shows the client that the response is incomplete.
        exchange.response.socket?.destroySoon();
        return;
      }
      const { status, contentType, headers, body } = await this.#options.codec.encode(result.outcome, head, model);
      const chunk = typeof body === "string" ? Buffer.from(body, "latin1") : Buffer.from(body);
      result.release();
      stream ??= new ReplyStream(exchange, status, contentType.replace(unsafe, " "), headers);
      await stream.write([chunk]);
    }
    if (exchange.signal.aborted) return;
    if (stream === null) throw new InferenceError("INTERNAL", "the model returned no response");
    stream.end();
  }

  async #infer(exchange: Exchange, call: PayloadCall): Promise<InferenceResponse> {
    return await call.model.infer(await this.#request(exchange, call));
  }

  async #request(exchange: Exchange, { target, model, head, callKind: asks }: PayloadCall): Promise<InferenceRequest> {
    const { limits, codec } = this.#options;
    const body = await readPayload(exchange, model.arena, limits);
    const payload: CallPayload = {
      ...head,
      ...body,
      callKind: asks,
      loopQueue: this.#loopQueue,
      signal: exchange.signal,
    };
    let request: PayloadRequest | null = null;
    try {
      request = await codec.decode(payload, model);
    } finally {
      // Releases the body if the model's request does not contain it.
      const isTaken = request?.inputs.some(({ data }) => data === body.tensor.data) === true;
      if (!isTaken) body.tensor.block?.release();
    }
    const { inputs, parameters } = request;
    const { receivedNs, executionMsMax, signal } = exchange;
    return newInferenceRequest({ ...target, inputs, parameters, receivedNs, executionMsMax, signal });
  }
}

interface PayloadCall {
  readonly target: ModelTarget;
  readonly model: ServedModel;
  readonly head: PayloadHead;
  readonly callKind: PayloadCallKind;
}

function headOf({ request: { headers } }: Exchange): PayloadHead {
  return { contentType: headers["content-type"] ?? "", accept: headers.accept ?? "", headers };
}

/** Matches characters that headers must not contain. Without this, the content type, which code of the model sets, could inject headers. */
const unsafe = /[^\t\x20-\x7e\x80-\xff]/g;

/** Sends the reply, then releases `response`, whose memory the body may refer to. */
function send(exchange: Exchange, result: PayloadReply, response: InferenceResponse | null): void {
  const { status, body } = result;
  const contentType = result.contentType.replace(unsafe, " ");
  const extra = result.headers ?? [];
  const headers = contentType === "" ? [...extra] : ["Content-Type", contentType, ...extra];
  if (exchange.signal.aborted) {
    if (response !== null) releaseResponse(response);
    return;
  }
  if (typeof body === "string") {
    if (response !== null) releaseResponse(response);
    if (contentType !== "") return reply(exchange, status, contentType, body, extra);
    return replyChunks(exchange, status, headers, [Buffer.from(body, "latin1")]);
  }
  const isView = response?.outputs.some(({ data }) => data.buffer === body.buffer) === true;
  if (isView && body.length > copiedBytesMax) {
    exchange.onClosed(() => releaseResponse(response));
    return replyChunks(exchange, status, headers, [body]);
  }
  const own = isView ? Buffer.from(body) : body;
  if (response !== null) releaseResponse(response);
  replyChunks(exchange, status, headers, [own]);
  if (exchange.response.writableLength > 0) exchange.memory.growUnchecked(exchange.response.writableLength);
}
