import { InferenceError, EventLoopQueue, Semaphore } from "@galatea/base";
import { outputLabels } from "../../engine/index.ts";
import type { InferenceResponse } from "../../inference/index.ts";
import { releaseTensors } from "../../tensor/index.ts";
import type { Exchange, HttpLimits } from "../http-listener/index.ts";
import { largeInflationsMax } from "../inflation-slot.ts";
import { type EncodeOptions, jsonTextBytesMax, ResponseEncoder, wholeTextBytesMax } from "../infer-codec/index.ts";
import { toBodyError, toCallError, InferCallError, inferenceRequest, type CallRequest } from "./call-request.ts";
import { errorEvent, replyEvents, type PrintedResponse } from "./event-reply.ts";
import { readInferBody, type CallHeader, type DecodedBody } from "./infer-body.ts";
import { ResponseIterator } from "./response-iterator.ts";
import { setTextMemory, reserveTextMemory } from "./text-memory.ts";

const eventStart = Buffer.from("data: ");
const eventEnd = Buffer.from("\n\n");

/**
 * Handles inferences of decoupled models over HTTP. The request has an ordinary KServe body. The HTTP response is a stream of server-sent
 * events, each with the KServe body of one response, or an error. An error before the first response is an ordinary HTTP error.
 */
export class InferEvents {
  readonly #options: { readonly limits: HttpLimits };
  readonly #encoder = new ResponseEncoder();
  readonly #loopQueue = new EventLoopQueue();
  readonly #inflations = new Semaphore(largeInflationsMax);

  constructor(options: { readonly limits: HttpLimits }) {
    this.#options = options;
  }

  /** Calls the model and sends its responses. Throws InferCallError (nothing was sent) or BodyError (which the listener sends). */
  async respond(exchange: Exchange, request: CallRequest): Promise<void> {
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
      throw toBodyError(error);
    }
    refuseBinaryOutputs(decoded);
    const responses = new ResponseIterator(model, inferenceRequest(decoded, target, exchange));
    await replyEvents(exchange, responses, async (outcome, hasStarted) => {
      if (outcome instanceof InferenceError) return printedError(outcome, hasStarted);
      try {
        return { status: 200, text: await this.#text(exchange, outcome, request, decoded.header) };
      } catch (error) {
        return printedError(InferenceError.from(error), hasStarted);
      }
    });
  }

  async #text(
    exchange: Exchange,
    response: InferenceResponse,
    { model }: CallRequest,
    { id, outputs }: CallHeader,
  ): Promise<PrintedResponse["text"]> {
    const { memory, signal } = exchange;
    const heldBytes = memory.bytes;
    const textBytesMax = jsonTextBytesMax(response, { outputs, binaryOutputs: false });
    reserveTextMemory(memory, textBytesMax);
    const options: EncodeOptions = {
      id,
      outputs,
      binaryOutputs: false,
      outputLabels: (output) => outputLabels(model.view, output),
      batches: () => model.view.config.maxBatchSize > 0,
    };
    const { json, jsonBytes } =
      textBytesMax > wholeTextBytesMax
        ? await this.#encoder.encodeInChunks(response, options, { loopQueue: this.#loopQueue, signal })
        : this.#encoder.encode(response, options);
    setTextMemory(memory, heldBytes, jsonBytes);
    return typeof json === "string" ? `data: ${json}\n\n` : [eventStart, ...json, eventEnd];
  }
}

function printedError(error: InferenceError, hasStarted: boolean): PrintedResponse {
  if (!hasStarted) throw toCallError(error);
  return { status: 200, text: errorEvent(error) };
}

/** Rejects binary outputs, because events are text. */
function refuseBinaryOutputs({ header, tensors }: DecodedBody): void {
  const isDesired =
    header.outputs === null
      ? header.binaryOutputs
      : header.outputs.some((output) => output.binary ?? header.binaryOutputs);
  if (!isDesired) return;
  releaseTensors(tensors);
  const text = "a model with decoupled transaction policy responds with events, which cannot contain binary outputs";
  throw new InferCallError(new InferenceError("INVALID_ARG", text), "application/json");
}
