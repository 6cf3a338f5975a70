import { assert, InferenceError } from "@galatea/base";
import type { Engine, ModelTarget, ServedModel } from "../../engine/index.ts";
import { newInferenceRequest, type InferenceRequest, type InferenceResponse } from "../../inference/index.ts";
import { JsonScanner } from "../../tensor/index.ts";
import { BodyError, reply, ReplyStream, httpStatusOf, type Exchange, type HttpLimits } from "../http-listener/index.ts";
import { eachMember, parsingRequestJson } from "../infer-codec/index.ts";
import { disposableOutcome, ResponseIterator } from "../infer-http/index.ts";
import { readPayload } from "./payload-body.ts";

/** Input and output of a Triton model that implements the OpenAI API: JSON text in a BYTES tensor of one element. */
const openAiInput = "openai_request";
const openAiOutput = "openai_response";
/** Name of the request parameter that contains the API's path, such as `/v1/chat/completions`. */
const pathParameter = "openai_path";

const jsonType = "application/json";
const eventsType = "text/event-stream; charset=utf-8";
const lengthBytes = 4;

/**
 * Calls Triton models that implement the OpenAI API themselves: they receive the request body unchanged. Each response of the model is one
 * JSON document. For a streaming request, each document is sent as an event, and `[DONE]` follows the last one; otherwise the model must
 * send one response. The model must also convert chats to prompts, because the conversion depends on its tokenizer.
 */
export class OpenAiCalls {
  readonly #engine: Engine;
  readonly #limits: HttpLimits;

  constructor({ engine, limits }: { readonly engine: Engine; readonly limits: HttpLimits }) {
    this.#engine = engine;
    this.#limits = limits;
  }

  /** Calls the model and sends its response or an error. Throws only BodyError. */
  async respond(exchange: Exchange, target: ModelTarget, path: string): Promise<void> {
    try {
      using model = this.#engine.open(target);
      checkSpeaks(model);
      const body = await readPayload(exchange, model.arena, this.#limits);
      let isStreamed: boolean;
      try {
        isStreamed = requestsStream(body.bytes);
      } catch (error) {
        body.tensor.block?.release();
        throw error;
      }
      const tensor = { ...body.tensor, name: openAiInput, shape: model.view.config.maxBatchSize > 0 ? [1, 1] : [1] };
      const request = inferenceRequest(exchange, target, { tensor, path });
      await (isStreamed ? this.#stream(exchange, model, request) : this.#complete(exchange, model, request));
    } catch (error) {
      if (error instanceof BodyError) throw error;
      if (!exchange.signal.aborted) refuse(exchange, InferenceError.from(error));
    }
  }

  async #complete(exchange: Exchange, model: ServedModel, request: InferenceRequest): Promise<void> {
    let body: Buffer | null = null;
    for await (const outcome of streamOutcomes(model, request)) {
      using result = disposableOutcome(outcome);
      if (result.outcome instanceof InferenceError) throw result.outcome;
      if (body !== null)
        throw new InferenceError("INTERNAL", "the model returned several responses to a request without streaming");
      body = Buffer.from(documentOf(result.outcome));
    }
    if (body === null) throw new InferenceError("INTERNAL", "the model returned no response");
    reply(exchange, 200, jsonType, body);
  }

  async #stream(exchange: Exchange, model: ServedModel, request: InferenceRequest): Promise<void> {
    let stream: ReplyStream | null = null;
    for await (const outcome of streamOutcomes(model, request)) {
      using result = disposableOutcome(outcome);
      if (exchange.signal.aborted) return;
      if (result.outcome instanceof InferenceError) {
        if (stream === null) throw result.outcome;
        return await ended(stream, `data: ${latin1(errorDocument(result.outcome))}\n\n`);
      }
      const document = oneLine(documentOf(result.outcome));
      result.release();
      stream ??= new ReplyStream(exchange, 200, eventsType);
      await stream.write(`data: ${document}\n\n`);
    }
    stream ??= new ReplyStream(exchange, 200, eventsType);
    await ended(stream, "data: [DONE]\n\n");
  }
}

async function ended(stream: ReplyStream, last: string): Promise<void> {
  await stream.write(last);
  stream.end();
}

async function* streamOutcomes(model: ServedModel, request: InferenceRequest) {
  if (model.view.config.decoupled) yield* new ResponseIterator(model, request);
  else yield await model.infer(request);
}

function checkSpeaks({ view: { config } }: ServedModel): void {
  const has = (tensors: readonly { readonly name: string }[], name: string) =>
    tensors.some((tensor) => tensor.name === name);
  if (has(config.inputs, openAiInput) && has(config.outputs, openAiOutput)) return;
  const text = `model '${config.name}' does not support OpenAI's API: it has no input '${openAiInput}' and output '${openAiOutput}'`;
  throw new InferenceError("NOT_FOUND", text);
}

/** Returns whether the request selects streaming. Throws INVALID_ARG for invalid JSON. */
function requestsStream(body: Uint8Array): boolean {
  let isStreamed = false;
  parsingRequestJson(() => {
    const check = new JsonScanner(body);
    check.skipValue();
    check.finish();
    const scanner = new JsonScanner(body);
    if (scanner.peek() !== 0x7b) return;
    eachMember(scanner, scanner.at, (name, at) => {
      // 0x74 is `t`, the first letter of `true`.
      if (name === "stream") isStreamed = body[at] === 0x74;
    });
  });
  return isStreamed;
}

function inferenceRequest(
  exchange: Exchange,
  target: ModelTarget,
  { tensor, path }: { readonly tensor: InferenceRequest["inputs"][number]; readonly path: string },
): InferenceRequest {
  const { receivedNs, executionMsMax, signal } = exchange;
  const parameters = new Map([[pathParameter, path]]);
  return newInferenceRequest({ ...target, inputs: [tensor], parameters, receivedNs, executionMsMax, signal });
}

/** Returns the JSON document in a response. The caller still owns the response. */
function documentOf({ outputs }: InferenceResponse): Uint8Array {
  const output = outputs.find(({ name }) => name === openAiOutput);
  if (output === undefined || output.data.length < lengthBytes) {
    throw new InferenceError("INTERNAL", `the model's response has no element of '${openAiOutput}'`);
  }
  const { data } = output;
  const byteLength = new DataView(data.buffer, data.byteOffset).getUint32(0, true);
  assert(lengthBytes + byteLength <= data.length, "an element lies within its tensor");
  return data.subarray(lengthBytes, lengthBytes + byteLength);
}

function errorDocument(error: InferenceError): string {
  const type = httpStatusOf(error) >= 500 ? "server_error" : "invalid_request_error";
  return JSON.stringify({ error: { message: error.message, type, param: null, code: error.code.toLowerCase() } });
}

/** Removes line breaks between the tokens of a JSON document, because a line break ends the data of an event. */
const oneLine = (document: Uint8Array) =>
  Buffer.from(document)
    .toString("latin1")
    .replace(/[\r\n]/g, " ");

const latin1 = (text: string) => Buffer.from(text).toString("latin1");

function refuse(exchange: Exchange, error: InferenceError): void {
  reply(exchange, httpStatusOf(error), jsonType, Buffer.from(errorDocument(error)));
}
