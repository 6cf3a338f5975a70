import { InferenceError, EventLoopQueue, Semaphore } from "@galatea/base";
import { labelsOf } from "../../engine/index.ts";
import type { InferenceResponse } from "../../inference/index.ts";
import { releaseTensors } from "../../tensor/index.ts";
import type { Exchange, HttpLimits } from "../http-listener/index.ts";
import { largeInflationsMax } from "../inflation-slot.ts";
import { type EncodeOptions, jsonTextBytesMax, ResponseEncoder, wholeTextBytesMax } from "../infer-codec/index.ts";
import { bodyErrorOf, callErrorOf, InferCallError, inferenceRequest, type CallRequest } from "./call-request.ts";
import { errorEvent, replyEvents, type PrintedAnswer } from "./event-reply.ts";
import { readInferBody, type CallHeader, type DecodedBody } from "./infer-body.ts";
import { StreamedAnswers } from "./streamed-answers.ts";
import { settleText, takeForText } from "./text-memory.ts";

const eventStart = Buffer.from("data: ");
const eventEnd = Buffer.from("\n\n");

/**
 * Inferences of decoupled models over HTTP. The request is an ordinary KServe body; the HTTP response is a stream of events, each the
 * KServe body of one response, or an error. An error before any response is an ordinary HTTP response.
 */
export class InferEvents {
  readonly #options: { readonly limits: HttpLimits };
  readonly #encoder = new ResponseEncoder();
  readonly #loopQueue = new EventLoopQueue();
  readonly #inflations = new Semaphore(largeInflationsMax);

  constructor(options: { readonly limits: HttpLimits }) {
    this.#options = options;
  }

  /** Throws InferCallError (nothing has been sent) or BodyError (the listener responds). */
  async answer(exchange: Exchange, request: CallRequest): Promise<void> {
    const { target, model, headerBytes, compressed } = request;
    let decoded: DecodedBody;
    try {
      decoded = await readInferBody(exchange, {
        model,
        headerBytes,
        compressed,
        limits: this.#options.limits,
        loopQueue: this.#loopQueue,
        inflations: this.#inflations,
      });
    } catch (error) {
      throw bodyErrorOf(error);
    }
    refuseBinaryOutputs(decoded);
    const answers = new StreamedAnswers(model, inferenceRequest(decoded, target, exchange));
    await replyEvents(exchange, answers, async (outcome, hasBegun) => {
      if (outcome instanceof InferenceError) return printedError(outcome, hasBegun);
      try {
        return { status: 200, text: await this.#text(exchange, outcome, request, decoded.header) };
      } catch (error) {
        return printedError(InferenceError.from(error), hasBegun);
      }
    });
  }

  async #text(
    exchange: Exchange,
    response: InferenceResponse,
    { model }: CallRequest,
    { id, outputs }: CallHeader,
  ): Promise<PrintedAnswer["text"]> {
    const { memory, signal } = exchange;
    const heldBytes = memory.bytes;
    const textBytesMax = jsonTextBytesMax(response, { outputs, binaryOutputs: false });
    takeForText(memory, textBytesMax);
    const options: EncodeOptions = {
      id,
      outputs,
      binaryOutputs: false,
      labelsOf: (output) => labelsOf(model.view, output),
      batches: () => model.view.config.maxBatchSize > 0,
    };
    const { json, jsonBytes } =
      textBytesMax > wholeTextBytesMax
        ? await this.#encoder.encodeInChunks(response, options, { loopQueue: this.#loopQueue, signal })
        : this.#encoder.encode(response, options);
    settleText(memory, heldBytes, jsonBytes);
    return typeof json === "string" ? `data: ${json}\n\n` : [eventStart, ...json, eventEnd];
  }
}

function printedError(error: InferenceError, hasBegun: boolean): PrintedAnswer {
  if (!hasBegun) throw callErrorOf(error);
  return { status: 200, text: errorEvent(error) };
}

/** Rejects binary outputs: events are text. */
function refuseBinaryOutputs({ header, tensors }: DecodedBody): void {
  const isWanted =
    header.outputs === null
      ? header.binaryOutputs
      : header.outputs.some((output) => output.binary ?? header.binaryOutputs);
  if (!isWanted) return;
  releaseTensors(tensors);
  const text = "a model with decoupled transaction policy responds with events, which cannot contain binary outputs";
  throw new InferCallError(new InferenceError("INVALID_ARG", text), "application/json");
}
