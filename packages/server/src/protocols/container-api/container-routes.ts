import { InferenceError, KeyedLock, unreachable, type Clock } from "@galatea/base";
import type { Engine, ModelTarget } from "../../engine/index.ts";
import { JsonScanner } from "../../tensor/index.ts";
import {
  BodyError,
  readBodyToBuffer,
  reply,
  replyError,
  type Exchange,
  type HttpLimits,
} from "../http-listener/index.ts";
import { eachMember, missingMemberError, parsingRequestJson, stringAt, memberError } from "../infer-codec/index.ts";
import type { ContainerCalls } from "./container-calls.ts";
import type { ContainerLimits } from "./limits.ts";
import { isForbiddenPath, parseModelPath, resolveModelPath } from "./model-path.ts";
import { openAiRoute, type OpenAiRoute } from "./openai-routes.ts";
import { PayloadCalls } from "./payload-calls.ts";
import type { PayloadCodec } from "./payload-codec.ts";
import { TritonCalls, type InferenceType } from "./triton-calls.ts";

/**
 * The format of request and response bodies: Triton's, or that of a codec. In Triton's format, /invocations accepts one of several
 * inference types.
 */
export type ContainerFormat =
  | { readonly kind: "triton"; readonly inferenceType: InferenceType }
  | { readonly kind: "payload"; readonly codec: PayloadCodec };

export interface ContainerRoutesOptions {
  /** True if only the platform can reach the listener. Calls may then set a time limit of executions. */
  readonly isPrivate: boolean;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly limits: HttpLimits;
  readonly containerLimits: ContainerLimits;
  /** Condition for status 200 of /ping (SAGEMAKER_TRITON_PING_MODE): all models are ready, or the server is live. */
  readonly pingMode: "ready" | "live";
  /** The model that /invocations calls. */
  readonly defaultModelName: string;
  readonly language: ContainerFormat;
  /** The directory that the server uses instead of /opt/ml. */
  readonly mlRoot: string;
  /** Returns the directory of an unpacked archive that is the model to serve, and the repository that contains it. */
  readonly chooseModelDirectory: (
    directory: string,
  ) => Promise<{ readonly repositoryDirectory: string; readonly modelDirectoryName: string }>;
  /**
   * Returns the confinement measures that this machine does not support, each with the reason. Null before they are known, and for a
   * container without confinement.
   */
  readonly unconfined: () => Readonly<Record<string, string>> | null;
  /** Called at each ping. */
  readonly onPing: () => void;
}

/** Response header of /ping, which the platform reads: the value of `unconfined` as JSON. */
const unconfinedHeader = "X-Galatea-Unconfined";

/** Response header of a load and of a model description: the memory of the model in bytes. */
const modelBytesHeader = "X-Galatea-Model-Bytes";

/** Request header that the platform sends: time in milliseconds for which the caller waits for the response. */
const callLimitHeader = "x-galatea-call-limit-ms";
/**
 * Time limit of a call without the header `callLimitHeader`, in milliseconds, for formats other than Triton's. It is the default of the
 * toolkits in SageMaker's containers.
 */
const payloadMsMax = 60_000;

const targetModelHeader = "x-amzn-sagemaker-target-model";

/** A path of the multi-model API: /models, /models/<id> or /models/<id>/invoke; `id` is "" for /models. */
interface ModelRoute {
  readonly id: string;
  readonly invoke: boolean;
}

/** A model archive of a multi-model endpoint, with the id under which it was registered. */
interface HostedModel {
  readonly id: string;
  readonly url: string;
  /** The name that clients send (X-Amzn-SageMaker-Target-Model); the id if they send none. */
  readonly servedName: string;
  /** False while the model loads or unloads. */
  isLoaded: boolean;
}

type RouteHandler = (exchange: Exchange, id: string) => void | Promise<void>;

/**
 * Returns the handler of container API requests. The handler throws only BodyError, which the listener sends; any other exception is a bug.
 */
export function containerHandler(options: ContainerRoutesOptions): (exchange: Exchange) => void | Promise<void> {
  const routes = new ContainerRoutes(options);
  const single: Readonly<Record<string, readonly [method: string, respond: RouteHandler]>> = {
    "/ping": ["GET", routes.ping],
    "/invocations": ["POST", routes.invocations],
    ...(routes.tellsExecutionParameters
      ? { "/execution-parameters": ["GET", routes.executionParameters] as const }
      : {}),
  };
  const collection: Readonly<Record<string, RouteHandler>> = { GET: routes.list, POST: routes.load };
  const model: Readonly<Record<string, RouteHandler>> = { GET: routes.describe, DELETE: routes.unload };
  return (exchange) => {
    const row = Object.hasOwn(single, exchange.path) ? single[exchange.path] : undefined;
    if (row !== undefined) {
      return exchange.method === row[0] ? row[1](exchange, "") : replyError(exchange, 405, "Method Not Allowed");
    }
    const openAi = openAiRoute(exchange.path);
    if (openAi !== null && exchange.method === "POST") return routes.openAi(exchange, openAi);
    const route = modelRoute(exchange.path);
    if (route === null) return replyEmpty(exchange, 400);
    // Triton handles GET /models/<id>/invoke like GET /models/<id>: it describes the model.
    if (route.invoke && exchange.method === "POST") return routes.invoke(exchange, route.id);
    const responses = route.id === "" ? collection : model;
    const response = Object.hasOwn(responses, exchange.method) ? responses[exchange.method] : undefined;
    return response === undefined ? replyEmpty(exchange, 400) : response(exchange, route.id);
  };
}

function modelRoute(path: string): ModelRoute | null {
  const segments = path.split("/");
  if (segments[0] !== "" || segments[1] !== "models" || segments.length > 4) return null;
  const id = segments[2] ?? "";
  if (segments.length === 4) return segments[3] === "invoke" && id !== "" ? { id, invoke: true } : null;
  return { id, invoke: false };
}

function replyEmpty(exchange: Exchange, status: number): void {
  reply(exchange, status, "text/plain", "");
}

/** Prints JSON in ASCII, because header values are limited to Latin-1. */
function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function callsOf({ language, ...options }: ContainerRoutesOptions): ContainerCalls {
  switch (language.kind) {
    case "triton":
      return new TritonCalls({ ...options, inferenceType: language.inferenceType });
    case "payload":
      return new PayloadCalls({ ...options, codec: language.codec });
    default:
      return unreachable(language);
  }
}

class ContainerRoutes {
  readonly #options: ContainerRoutesOptions;
  /** Registered archives by id. Each is loaded in its own namespace. */
  readonly #models = new Map<string, HostedModel>();
  /** Loads and unloads of one id run one after the other. */
  readonly #locks = new KeyedLock();
  readonly #calls: ContainerCalls;

  constructor(options: ContainerRoutesOptions) {
    this.#options = options;
    this.#calls = callsOf(options);
  }

  get tellsExecutionParameters(): boolean {
    return this.#calls.executionParameters !== null;
  }

  readonly executionParameters: RouteHandler = (exchange) =>
    this.#calls.executionParameters?.(exchange, this.#ownTarget());

  readonly ping: RouteHandler = (exchange) => {
    const { engine, pingMode, onPing } = this.#options;
    onPing();
    const unconfined = this.#options.unconfined();
    const headers = unconfined === null ? [] : [unconfinedHeader, asciiJson(unconfined)];
    reply(exchange, (pingMode === "live" ? engine.live : engine.ready) ? 200 : 400, "text/plain", "", headers);
  };

  readonly invocations: RouteHandler = async (exchange) => {
    this.#limit(exchange);
    await this.#calls.respond(exchange, this.#ownTarget(), "invocations");
  };

  #ownTarget(): ModelTarget {
    return { namespace: "", modelName: this.#options.defaultModelName, modelVersion: "" };
  }

  readonly invoke: RouteHandler = async (exchange, id) => {
    const model = this.#loaded(id);
    if (model === undefined) return replyEmpty(exchange, 404);
    if (isForAnother(exchange, model)) return this.#calls.refuse(exchange, wrongTarget(), "invoke");
    const target = { namespace: id, modelName: model.servedName, modelVersion: "" };
    this.#limit(exchange);
    await this.#calls.respond(exchange, target, "invoke");
  };

  /**
   * Sets the time limit of executions to the time for which the caller waits. An execution that takes longer is ended together with its
   * worker.
   */
  #limit(exchange: Exchange): void {
    const { isPrivate, language } = this.#options;
    const stated = isPrivate ? Number(exchange.request.headers[callLimitHeader]) : 0;
    const isPayload = language.kind === "payload";
    if (stated > 0) exchange.executionMsMax = stated;
    else exchange.executionMsMax = isPayload ? payloadMsMax : null;
  }

  async openAi(exchange: Exchange, { id, path }: OpenAiRoute): Promise<void> {
    this.#limit(exchange);
    if (id === null) {
      return await this.#calls.openAi(exchange, { target: this.#ownTarget(), path, route: "invocations" });
    }
    const model = this.#loaded(id);
    if (model === undefined) return replyEmpty(exchange, 404);
    const target = { namespace: id, modelName: model.servedName, modelVersion: "" };
    await this.#calls.openAi(exchange, { target, path, route: "invoke" });
  }

  readonly list: RouteHandler = (exchange) => {
    replyPlainJson(exchange, {
      models: [...this.#models.values()].filter(({ isLoaded }) => isLoaded).map(describeModel),
    });
  };

  readonly describe: RouteHandler = (exchange, id) => {
    const model = this.#loaded(id);
    if (model === undefined) return replyEmpty(exchange, 404);
    const body = Buffer.from(JSON.stringify(describeModel(model)));
    const { usedBytes } = this.#options.engine.memory(model.id);
    reply(exchange, 200, "text/plain", body, [modelBytesHeader, String(Math.round(usedBytes))]);
  };

  readonly load: RouteHandler = async (exchange) => {
    try {
      const model = await readLoadBody(exchange, this.#options);
      if (isForbiddenPath(model.url)) return replyEmpty(exchange, 400);
      const milliseconds = await this.#locks.run(model.id, () => this.#register(model, exchange.signal));
      reply(exchange, 200, "text/plain", "", [
        // These headers are not part of SageMaker's contract. The platform reads them instead of estimating the duration of the load and
        // the model's memory from file sizes.
        "X-Galatea-Load-Milliseconds",
        milliseconds.toFixed(3),
        modelBytesHeader,
        String(Math.round(this.#options.engine.memory(model.id).usedBytes)),
      ]);
    } catch (error) {
      refuse(exchange, error);
    }
  };

  readonly unload: RouteHandler = async (exchange, id) => {
    try {
      const isUnloaded = await this.#locks.run(id, async () => {
        const model = this.#models.get(id);
        if (model === undefined) return false;
        if (isForAnother(exchange, model)) throw wrongTarget();
        await this.#unregister(model);
        return true;
      });
      replyEmpty(exchange, isUnloaded ? 200 : 404);
    } catch (error) {
      refuse(exchange, error);
    }
  };

  #loaded(id: string): HostedModel | undefined {
    const model = this.#models.get(id);
    return model?.isLoaded === true ? model : undefined;
  }

  /** Loads the model and resolves with the duration in milliseconds. Rejects with ALREADY_EXISTS or the engine's error. */
  async #register(model: HostedModel, signal: AbortSignal): Promise<number> {
    const { engine, clock, mlRoot, chooseModelDirectory, containerLimits } = this.#options;
    const { id, url, servedName } = model;
    const path = parseModelPath(url);
    signal.throwIfAborted();
    if (this.#models.has(id)) {
      throw new InferenceError("ALREADY_EXISTS", `model repository '${url}' has already been registered`);
    }
    if (this.#models.size >= containerLimits.modelsMax) {
      const text = `Out of memory: ${containerLimits.modelsMax} models are registered already`;
      throw new InferenceError("UNAVAILABLE", text, { reason: "out-of-memory" });
    }
    this.#models.set(id, model);
    try {
      const chosen = await chooseModelDirectory(await resolveModelPath(mlRoot, path, url));
      const startedNs = clock.monotonicNs();
      await engine.openNamespace({ namespace: id, servedName, ...chosen }, signal);
      model.isLoaded = true;
      return (clock.monotonicNs() - startedNs) / 1e6;
    } catch (error) {
      this.#models.delete(id);
      throw error;
    }
  }

  /** Resolves when the engine has freed the model's memory. */
  async #unregister(model: HostedModel): Promise<void> {
    model.isLoaded = false;
    try {
      await this.#options.engine.closeNamespace(model.id);
      this.#models.delete(model.id);
    } catch (error) {
      model.isLoaded = true;
      throw error;
    }
  }
}

/** Sends a JSON body as text/plain, as Triton does for these routes. */
function replyPlainJson(exchange: Exchange, value: unknown): void {
  reply(exchange, 200, "text/plain", Buffer.from(JSON.stringify(value)));
}

function describeModel(model: HostedModel): { modelName: string; modelUrl: string } {
  return { modelName: model.id, modelUrl: model.url };
}

function refuse(exchange: Exchange, thrown: unknown): void {
  if (!(thrown instanceof InferenceError) || thrown instanceof BodyError) throw thrown;
  if (exchange.signal.aborted) return;
  const status = thrown.code === "ALREADY_EXISTS" ? 409 : thrown.reason === "out-of-memory" ? 507 : 400;
  replyError(exchange, status, thrown.message);
}

/**
 * Returns whether the request's header names a different archive than its path; such a request is rejected (server#8923). Without the
 * header, the path selects the archive.
 */
function isForAnother(exchange: Exchange, model: HostedModel): boolean {
  const target = exchange.request.headers[targetModelHeader];
  return target !== undefined && target !== model.servedName;
}

function wrongTarget(): InferenceError {
  return new InferenceError(
    "INVALID_ARG",
    "X-Amzn-SageMaker-Target-Model header does not match the model requested in the URL",
  );
}

const idForm = /^[0-9A-Za-z._-]{1,256}$/;

async function readLoadBody(exchange: Exchange, options: ContainerRoutesOptions): Promise<HostedModel> {
  const limits = { ...options.limits, bodyBytesMax: options.containerLimits.loadBodyBytesMax };
  const body = await readBodyToBuffer(exchange, limits);
  const members = new Map<string, string>();
  // Triton crashes on a body that is not JSON. This server sends an ordinary error.
  parsingRequestJson(() => {
    const check = new JsonScanner(body);
    if (check.peek() === -1) check.fail("The document is empty.", check.at);
    check.skipValue();
    check.finish();
  });
  const scanner = new JsonScanner(body);
  if (scanner.peek() === 0x7b) {
    eachMember(scanner, scanner.at, (name, at) => {
      if (name === "model_name" || name === "url") {
        members.set(
          name,
          stringAt(scanner, at, (text) => memberError(name, text)),
        );
      }
    });
  }
  const id = members.get("model_name");
  const url = members.get("url");
  if (id === undefined) throw missingMemberError("model_name");
  if (url === undefined) throw missingMemberError("url");
  if (!idForm.test(id)) throw new InferenceError("INVALID_ARG", `Invalid "model_name" '${id}'`);
  const target = exchange.request.headers[targetModelHeader];
  return { id, url, servedName: typeof target === "string" && target !== "" ? target : id, isLoaded: false };
}
