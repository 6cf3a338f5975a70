import { InferenceError } from "../../base/index.ts";
import type { ModelTarget, ServedModel } from "../../engine/index.ts";
import { releaseResponse, type InferenceRequest, type InferenceResponse, type Outcome } from "../../inference/index.ts";
import type { IntegerRange } from "../../tensor/index.ts";
import {
  errorBody,
  reply,
  replyError,
  replyPieces,
  ReplyStream,
  statusOf,
  type Exchange,
  type HttpLimits,
} from "../http-listener/index.ts";
import { jsonTextBytesMax } from "../infer-codec/index.ts";
import { isRequestError } from "../infer-http/index.ts";
import { answersOf, type Answers, type AnswersOf } from "./answers.ts";
import { readGenerateBody, type GenerateBody } from "./generate-body.ts";
import { GenerateEncoder, type AnswerText } from "./generate-encoder.ts";

export interface GenerateCallOptions {
  readonly limits: HttpLimits;
  readonly integerRange: IntegerRange;
  /** Where answers come from; the model itself where none is named. */
  readonly answersOf?: AnswersOf;
}

export interface GenerateCallRequest {
  readonly target: ModelTarget;
  /** The model of the target, held by the caller until this call has been answered. */
  readonly model: ServedModel;
}

/** An outcome as text, and the status of a reply that begins with it. */
interface Printed {
  readonly status: number;
  readonly text: AnswerText;
}

const eventStreamType = "text/event-stream; charset=utf-8";

/** Triton's answer to any error of a model, whatever its code; what our own limits refuse says so. */
const modelErrorStatus = 400;

const notOneAnswer =
  "generate expects model to produce exactly 1 response, use generate stream for model that generates various number of responses";

/** Texts up to this are counted only when a slow reader leaves them lying. */
const uncountedBytesMax = 64 * 1024;

/**
 * One call of the generate extension, from a request whose line has been judged to the reply on its way. What is wrong with the request is
 * thrown before anything has been sent; what is wrong with an answer goes out as Triton words it.
 */
export class GenerateCalls {
  readonly #options: GenerateCallOptions;
  readonly #encoder = new GenerateEncoder();

  constructor(options: GenerateCallOptions) {
    this.#options = options;
  }

  /** Sends the model's only answer; the status is the first answer's even where there are more, or none. */
  async generate(exchange: Exchange, request: GenerateCallRequest): Promise<void> {
    const { id, answers } = await this.#ask(exchange, request);
    let first: Printed | null = null;
    let count = 0;
    for await (const outcome of answers) {
      using answer = owned(outcome);
      if (++count === 1) first = this.#print(exchange, answer.outcome, id, "object");
    }
    if (exchange.signal.aborted) return;
    if (first === null || count > 1)
      return replyError(exchange, first?.status ?? 200, notOneAnswer, "application/json");
    if (typeof first.text === "string") return reply(exchange, first.status, "application/json", first.text);
    replyPieces(exchange, first.status, ["Content-Type", "application/json"], first.text);
  }

  /** Sends each answer as an event once the one before has left; the status is the first one's. */
  async stream(exchange: Exchange, request: GenerateCallRequest): Promise<void> {
    const { id, answers } = await this.#ask(exchange, request);
    const { signal, memory } = exchange;
    let stream: ReplyStream | null = null;
    try {
      for await (const outcome of answers) {
        using answer = owned(outcome);
        if (signal.aborted) return;
        const heldBytes = memory.bytes;
        const { status, text } = this.#print(exchange, answer.outcome, id, "event", stream !== null);
        answer.release();
        stream ??= new ReplyStream(exchange, status, eventStreamType);
        await stream.write(text);
        memory.shrinkTo(heldBytes);
      }
      if (signal.aborted) return;
      stream ??= new ReplyStream(exchange, 200, eventStreamType);
      stream.end();
    } catch (error) {
      // The client has gone: nobody is left to be told.
      if (!signal.aborted) throw error;
    }
  }

  async #ask(exchange: Exchange, request: GenerateCallRequest): Promise<{ id: string; answers: Answers }> {
    const { target, model } = request;
    const { "content-encoding": coding } = exchange.request.headers;
    if (coding !== undefined && coding !== "identity") {
      throw new InferenceError("INVALID_ARG", "Unsupported content-encoding, only 'identity' is supported.");
    }
    const ask = this.#options.answersOf ?? answersOf;
    const body = await readGenerateBody(exchange, { ...this.#options, model });
    return { id: body.id, answers: ask(model, inferenceRequest(body, target, exchange)) };
  }

  /** Throws an error that the engine had before there was an answer, unless a reply has `begun`. */
  #print(exchange: Exchange, outcome: Outcome, id: string, form: "object" | "event", begun = false): Printed {
    if (outcome instanceof InferenceError) return printedError(outcome, form, begun);
    try {
      return { status: 200, text: this.#text(exchange, outcome, id, form) };
    } catch (error) {
      return printedError(InferenceError.from(error), form, begun);
    }
  }

  #text(exchange: Exchange, response: InferenceResponse, id: string, form: "object" | "event"): AnswerText {
    const { memory } = exchange;
    const heldBytes = memory.bytes;
    const bytesMax = jsonTextBytesMax(response, { outputs: null, binaryOutputs: false });
    if (bytesMax > uncountedBytesMax) memory.grow(bytesMax);
    const { text, textBytes } = this.#encoder.encode(response, id, form);
    const keptBytes = textBytes > uncountedBytesMax ? textBytes : 0;
    memory.shrinkTo(heldBytes + keptBytes);
    memory.growAnyway(Math.max(0, heldBytes + keptBytes - memory.bytes));
    return text;
  }
}

function printedError(error: InferenceError, form: "object" | "event", begun: boolean): Printed {
  if (!begun && (error.reason !== null || isRequestError(error))) throw error;
  const status = error.reason === null ? modelErrorStatus : statusOf(error);
  const body = errorBody(error.message);
  return { status, text: form === "event" ? `data: ${body}\n\n` : body };
}

/** An outcome that is released with its scope, or before. */
function owned(outcome: Outcome): { readonly outcome: Outcome; release(): void } & Disposable {
  let held = !(outcome instanceof InferenceError);
  const release = () => {
    if (held && !(outcome instanceof InferenceError)) releaseResponse(outcome);
    held = false;
  };
  return { outcome, release, [Symbol.dispose]: release };
}

function inferenceRequest(body: GenerateBody, target: ModelTarget, exchange: Exchange): InferenceRequest {
  return {
    id: body.id,
    namespace: target.namespace,
    modelName: target.modelName,
    modelVersion: target.modelVersion,
    inputs: body.tensors,
    requestedOutputs: null,
    parameters: body.parameters,
    sequence: null,
    priority: 0,
    queueTimeoutUs: 0,
    receivedNs: exchange.receivedNs,
    deadlineNs: Number.POSITIVE_INFINITY,
    caller: null,
    trace: null,
    signal: exchange.signal,
  };
}
