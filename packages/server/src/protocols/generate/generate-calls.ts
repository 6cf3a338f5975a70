import { InferenceError, isMemoryReason, EventLoopQueue } from "@galatea/base";
import type { ModelTarget, ServedModel } from "../../engine/index.ts";
import {
  newInferenceRequest,
  type InferenceRequest,
  type InferenceResponse,
  type Outcome,
} from "../../inference/index.ts";
import {
  errorBody,
  reply,
  replyError,
  replyChunks,
  httpStatusOf,
  type Exchange,
  type HttpLimits,
} from "../http-listener/index.ts";
import { jsonTextBytesMax, wholeTextBytesMax } from "../infer-codec/index.ts";
import {
  errorEvent,
  disposableOutcome,
  replyEvents,
  setTextMemory,
  reserveTextMemory,
  type PrintedResponse,
} from "../infer-http/index.ts";
import { streamOutcomes, type OutcomeStream, type SendRequest } from "./outcome-stream.ts";
import { readGenerateBody, type GenerateBody } from "./generate-body.ts";
import { GenerateEncoder, type ResponseFormat, type ResponseText } from "./generate-encoder.ts";

export interface GenerateCallOptions {
  readonly limits: HttpLimits;
  /** Sends a request to the model and returns its responses. Tests replace this function. */
  readonly streamOutcomes?: SendRequest;
}

export interface GenerateCallRequest {
  readonly target: ModelTarget;
  /** The model of the target, leased by the caller until this call has ended. */
  readonly model: ServedModel;
}

/** HTTP status of every error of a model, as in Triton. Errors from the server's own limits have other statuses. */
const modelErrorStatus = 400;

const notOneResponse =
  "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses";

/**
 * Handles calls of the generate extension, from the parsed request line to the response. Throws errors that occur before the response
 * begins; sends later ones with Triton's texts.
 */
export class GenerateCalls {
  readonly #options: GenerateCallOptions;
  readonly #encoder = new GenerateEncoder();
  readonly #loopQueue = new EventLoopQueue();

  constructor(options: GenerateCallOptions) {
    this.#options = options;
  }

  /**
   * Sends the model's only response. If the model sends several responses, which is an error, the HTTP status is still that of the first
   * one.
   */
  async generate(exchange: Exchange, request: GenerateCallRequest): Promise<void> {
    const { id, answers } = await this.#send(exchange, request);
    let first: PrintedResponse | null = null;
    let count = 0;
    for await (const outcome of answers) {
      using result = disposableOutcome(outcome);
      if (++count === 1) first = await this.#print(exchange, result.outcome, { id, form: "object", hasStarted: false });
    }
    if (exchange.signal.aborted) return;
    if (first === null || count > 1)
      return replyError(exchange, first?.status ?? 200, notOneResponse, "application/json");
    if (typeof first.text === "string") return reply(exchange, first.status, "application/json", first.text);
    replyChunks(exchange, first.status, ["Content-Type", "application/json"], first.text);
  }

  /** Sends each response as an event after the previous one was sent. The HTTP status is that of the first response. */
  async stream(exchange: Exchange, request: GenerateCallRequest): Promise<void> {
    const { id, answers } = await this.#send(exchange, request);
    await replyEvents(exchange, answers, (outcome, hasStarted) =>
      this.#print(exchange, outcome, { id, form: "event", hasStarted: hasStarted }),
    );
  }

  async #send(exchange: Exchange, request: GenerateCallRequest): Promise<{ id: string; answers: OutcomeStream }> {
    const { target, model } = request;
    const { "content-encoding": coding } = exchange.request.headers;
    if (coding !== undefined && coding !== "identity") {
      throw new InferenceError("INVALID_ARG", "Unsupported content-encoding, only 'identity' is supported.");
    }
    const call = this.#options.streamOutcomes ?? streamOutcomes;
    const body = await readGenerateBody(exchange, { ...this.#options, model, loopQueue: this.#loopQueue });
    return { id: body.id, answers: call(model, inferenceRequest(body, target, exchange)) };
  }

  /**
   * Prints an outcome. If the HTTP response has not begun, throws errors of the engine that occurred before the model was called, and
   * out-of-memory errors.
   */
  async #print(exchange: Exchange, outcome: Outcome, textOptions: TextOptions): Promise<PrintedResponse> {
    if (outcome instanceof InferenceError) return printedError(outcome, textOptions);
    try {
      return { status: 200, text: await this.#text(exchange, outcome, textOptions) };
    } catch (error) {
      return printedError(InferenceError.from(error), textOptions);
    }
  }

  async #text(exchange: Exchange, response: InferenceResponse, { id, form }: TextOptions): Promise<ResponseText> {
    const { memory, signal } = exchange;
    const heldBytes = memory.bytes;
    const textBytesMax = jsonTextBytesMax(response, { outputs: null, binaryOutputs: false });
    reserveTextMemory(memory, textBytesMax);
    const { text, textBytes } =
      textBytesMax > wholeTextBytesMax
        ? await this.#encoder.encodeInChunks(response, id, form, { loopQueue: this.#loopQueue, signal })
        : this.#encoder.encode(response, id, form);
    setTextMemory(memory, heldBytes, textBytes);
    return text;
  }
}

interface TextOptions {
  readonly id: string;
  readonly form: ResponseFormat;
  /** True if a part of the HTTP response was sent. */
  readonly hasStarted: boolean;
}

function printedError(error: InferenceError, { form, hasStarted }: TextOptions): PrintedResponse {
  const isMemory = isMemoryReason(error.reason);
  if (!hasStarted && (isMemory || error.reason === "request-refused")) throw error;
  const status = isMemory ? httpStatusOf(error) : modelErrorStatus;
  return { status, text: form === "event" ? errorEvent(error) : errorBody(error.message) };
}

function inferenceRequest(body: GenerateBody, target: ModelTarget, exchange: Exchange): InferenceRequest {
  const { receivedNs, executionMsMax, signal } = exchange;
  const { id, tensors: inputs, parameters } = body;
  return newInferenceRequest({ id, ...target, inputs, parameters, receivedNs, executionMsMax, signal });
}
