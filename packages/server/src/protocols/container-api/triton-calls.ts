import { InferenceError, isMemoryReason } from "@galatea/base";
import type { Engine, ModelTarget } from "../../engine/index.ts";
import { GenerateCalls } from "../generate/index.ts";
import { BodyError, replyError, replyFailure, type Exchange, type HttpLimits } from "../http-listener/index.ts";
import { leadingInteger } from "../infer-codec/index.ts";
import { InferCallError, InferCalls, InferEvents, requestEncoding } from "../infer-http/index.ts";
import type { CallRoute, ContainerCalls, OpenAiContainerCall } from "./container-calls.ts";
import { OpenAiCalls } from "./openai-calls.ts";

/**
 * The kinds of calls to /invocations (SAGEMAKER_TRITON_INFERENCE_TYPE): a KServe inference, or the generate extension with one response or
 * a stream.
 */
export const inferenceTypes = ["infer", "generate", "generate_stream"] as const;
export type InferenceType = (typeof inferenceTypes)[number];

export interface TritonCallsOptions {
  readonly engine: Engine;
  readonly limits: HttpLimits;
  /** The kind of calls to /invocations. Calls to archives are always inferences. */
  readonly inferenceType: InferenceType;
}

const binaryTypePrefix = "application/vnd.sagemaker-triton.binary+json;json-header-size=";

/** Handles calls in Triton's format. */
export class TritonCalls implements ContainerCalls {
  readonly executionParameters = null;
  readonly #engine: Engine;
  readonly #inferenceType: InferenceType;
  readonly #infers: InferCalls;
  readonly #events: InferEvents;
  readonly #generates: GenerateCalls;
  readonly #openAi: OpenAiCalls;

  constructor(options: TritonCallsOptions) {
    this.#engine = options.engine;
    this.#inferenceType = options.inferenceType;
    this.#infers = new InferCalls({
      ...options,
      binaryHeaders: (jsonBytes) => ["Content-Type", `${binaryTypePrefix}${jsonBytes}`],
    });
    this.#events = new InferEvents(options);
    this.#openAi = new OpenAiCalls(options);
    this.#generates = new GenerateCalls(options);
  }

  async respond(exchange: Exchange, target: ModelTarget, route: CallRoute): Promise<void> {
    try {
      await this.#call(route === "invoke" ? "infer" : this.#inferenceType, exchange, target);
    } catch (error) {
      if (!(error instanceof InferCallError)) throw error;
      if (!exchange.signal.aborted) this.#refuse(exchange, error, route);
    }
  }

  async openAi(exchange: Exchange, { target, path }: OpenAiContainerCall): Promise<void> {
    await this.#openAi.respond(exchange, target, path);
  }

  refuse(exchange: Exchange, error: InferenceError, route: CallRoute): void {
    this.#refuse(exchange, new InferCallError(error, "application/json"), route);
  }

  /**
   * Sends an error. For the container's own model, statuses are those of the KServe port. For archives, the status is 507 if unloading
   * other models may help, otherwise 400.
   */
  #refuse(exchange: Exchange, { error, contentType }: InferCallError, route: CallRoute): void {
    if (route === "invocations") return replyFailure(exchange, error, contentType);
    // Unlike Triton, sends the status for a retry if the memory for requests is full, because unloading models would not help.
    const isModels = error.reason === "out-of-memory";
    if (!isModels && isMemoryReason(error.reason)) return replyFailure(exchange, error, "application/json");
    replyFailure(exchange, error, "application/json", isModels ? 507 : 400);
  }

  /** Runs a call. Throws InferCallError (nothing was sent) or BodyError. */
  async #call(type: InferenceType, exchange: Exchange, target: ModelTarget): Promise<void> {
    try {
      if (type === "infer") await this.#infer(exchange, target);
      else await this.#generate(type, exchange, target);
    } catch (thrown) {
      // Errors that occur before the inference, such as an unknown model, are sent with the same content type as errors of the inference.
      if (!(thrown instanceof InferenceError) || thrown instanceof BodyError) throw thrown;
      throw new InferCallError(thrown, type === "infer" ? "text/plain" : "application/json");
    }
  }

  async #infer(exchange: Exchange, target: ModelTarget): Promise<void> {
    // Errors of the model are thrown before the request's body is read.
    using model = this.#engine.open(target);
    const coding = requestEncoding(exchange.request.headers["content-encoding"]);
    if (coding === null) return replyError(exchange, 415, "Unsupported compression type");
    const compressed = coding === "compressed";
    const headerBytes = jsonHeaderBytes(exchange, compressed);
    const request = { target, model, headerBytes, compressed };
    if (model.view.config.decoupled) await this.#events.respond(exchange, request);
    else await this.#infers.respond(exchange, { ...request, encoding: "identity" });
  }

  async #generate(type: "generate" | "generate_stream", exchange: Exchange, target: ModelTarget): Promise<void> {
    using model = this.#engine.open(target);
    if (type === "generate") await this.#generates.generate(exchange, { target, model });
    else await this.#generates.stream(exchange, { target, model });
  }
}

/** Returns the length of the JSON header from the content type; null for another content type, when the whole body is JSON. */
function jsonHeaderBytes(exchange: Exchange, compressed: boolean): number | null {
  const type = exchange.request.headers["content-type"];
  const at = type?.indexOf(binaryTypePrefix) ?? -1;
  if (type === undefined || at === -1) return null;
  if (at > 0) {
    throw new InferenceError(
      "INVALID_ARG",
      `expect MIME type for binary data starts with '${binaryTypePrefix}', got: ${type}`,
    );
  }
  const got = type.slice(binaryTypePrefix.length);
  const value = leadingInteger(got);
  if (value === null) throw new InferenceError("INVALID_ARG", `Unable to parse inference header size, got: ${got}`);
  const declared = compressed ? -1 : Number(exchange.request.headers["content-length"] ?? -1);
  if (value < 0 || (declared >= 0 && value > declared)) {
    throw new InferenceError(
      "INVALID_ARG",
      `inference header size should be in range (0, ${Math.max(declared, 0)}), got: ${got}`,
    );
  }
  return value;
}
