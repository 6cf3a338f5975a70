import { InferenceError, EventLoopQueue } from "@galatea/base";
import type { Engine, ModelTarget } from "../../engine/index.ts";
import { printConfigJson } from "../../modelconfig/index.ts";
import {
  BodyError,
  reply,
  replyError,
  replyFailure,
  replyJson,
  type ContentType,
  type Exchange,
  type HttpLimits,
} from "../http-listener/index.ts";
import { GenerateCalls } from "../generate/index.ts";
import { leadingInteger } from "../infer-codec/index.ts";
import { InferCallError, InferCalls, requestEncoding, responseEncoding } from "../infer-http/index.ts";
import { acceptsHtml } from "@galatea/base/status-page";
import { sendModelPage } from "./model-page.ts";
import { handleIndex, handleLoad, handleUnload } from "./repository-routes.ts";
import type { RestrictedApi, Restrictions } from "../restricted-apis.ts";
import { RouteTable } from "./route-match.ts";
import { statisticsJson } from "./statistics-json.ts";

export interface KserveRoutesOptions {
  readonly engine: Engine;
  readonly limits: HttpLimits;
  readonly restrictions: Restrictions;
  /** Pattern of the names of headers that become parameters of inference requests; absent or null for none. */
  readonly forwardedHeaders?: RegExp | null;
}

type RouteHandler = (exchange: Exchange, values: readonly string[]) => void | Promise<void>;

interface Route {
  readonly pattern: string;
  readonly category: RestrictedApi;
  readonly methods: Readonly<Record<string, RouteHandler>>;
  /** Content type of this route's error responses. Triton uses both content types. */
  readonly errorType: ContentType;
}

/** Triton's routes that are not implemented, with the feature that the 501 response names. */
const notBuilt: readonly (readonly [
  pattern: string,
  methods: readonly string[],
  category: RestrictedApi,
  feature: string,
])[] = [
  ["/v2/trace/setting", ["GET", "POST"], "trace", "the trace extension"],
  ["/v2/models/:model/trace/setting", ["GET", "POST"], "trace", "the trace extension"],
  ["/v2/logging", ["GET", "POST"], "logging", "the logging extension"],
  ["/v2/systemsharedmemory/status", ["GET"], "shared-memory", "the system shared memory extension"],
  ["/v2/systemsharedmemory/region/:region/status", ["GET"], "shared-memory", "the system shared memory extension"],
  ["/v2/systemsharedmemory/region/:region/register", ["POST"], "shared-memory", "the system shared memory extension"],
  ["/v2/systemsharedmemory/region/:region/unregister", ["POST"], "shared-memory", "the system shared memory extension"],
  ["/v2/systemsharedmemory/unregister", ["POST"], "shared-memory", "the system shared memory extension"],
  ["/v2/cudasharedmemory/status", ["GET"], "shared-memory", "the CUDA shared memory extension"],
  ["/v2/cudasharedmemory/region/:region/status", ["GET"], "shared-memory", "the CUDA shared memory extension"],
  ["/v2/cudasharedmemory/region/:region/register", ["POST"], "shared-memory", "the CUDA shared memory extension"],
  ["/v2/cudasharedmemory/region/:region/unregister", ["POST"], "shared-memory", "the CUDA shared memory extension"],
  ["/v2/cudasharedmemory/unregister", ["POST"], "shared-memory", "the CUDA shared memory extension"],
];

function refuseNotBuilt(feature: string): RouteHandler {
  return () => {
    throw new InferenceError("UNSUPPORTED", `${feature} is not supported by this server yet`);
  };
}

const noRepositoryNames: RouteHandler = () => {
  throw new InferenceError("UNSUPPORTED", "'repository_name' specification is not supported");
};

/** Path of the HTML page for browsers. Other clients get a 404, as from Triton. */
const pagePath = "/";

const isHidden = ({ path, method, request }: Exchange): boolean =>
  path === pagePath && (method !== "GET" || !acceptsHtml(request.headers.accept));

/** Returns the route table of the KServe v2 protocol, as tritonserver serves it. */
function routeRows(options: KserveRoutesOptions): readonly Route[] {
  const { engine, limits } = options;
  const infer = inferHandler(options);
  const repository = { engine, limits, loopQueue: new EventLoopQueue() };
  const generates = new GenerateCalls(options);
  const generate: RouteHandler = async (exchange, [model, version]) => {
    const target = targetOf(model!, version);
    using opened = engine.open(target);
    await generates.generate(exchange, { target, model: opened });
  };
  const generateStream: RouteHandler = async (exchange, [model, version]) => {
    const target = targetOf(model!, version);
    using opened = engine.open(target);
    await generates.stream(exchange, { target, model: opened });
  };
  const ready: RouteHandler = (exchange, [model, version]) => {
    using opened = engine.open(targetOf(model!, version));
    if (opened.isHealthy) return replyEmpty(exchange, 200);
    replyError(exchange, 400, "Model version not ready");
  };
  const metadata: RouteHandler = (exchange, [model, version]) =>
    replyJson(exchange, engine.modelMetadata(targetOf(model!, version)));
  const config: RouteHandler = (exchange, [model, version]) => {
    using opened = engine.open(targetOf(model!, version));
    replyJson(exchange, printConfigJson(opened.view.config));
  };
  const statistics: RouteHandler = (exchange, [model, version]) =>
    replyJson(exchange, statisticsJson(engine.statistics(model ?? "", parseVersion(version))));
  const index: RouteHandler = (exchange) => handleIndex(exchange, repository);
  const json = "application/json";
  const plain = "text/plain";
  const models = "/v2/models/:model";
  const versions = "/v2/models/:model/versions/#version";
  return [
    row("/v2/health/live", "health", plain, { GET: (exchange) => replyEmpty(exchange, engine.live ? 200 : 400) }),
    row("/v2/health/ready", "health", plain, { GET: (exchange) => replyEmpty(exchange, engine.ready ? 200 : 400) }),
    row("/v2", "metadata", json, { GET: (exchange) => replyJson(exchange, engine.serverMetadata()) }),
    row(models, "metadata", json, { GET: metadata }),
    row(versions, "metadata", json, { GET: metadata }),
    row(`${models}/ready`, "health", plain, { GET: ready }),
    row(`${versions}/ready`, "health", plain, { GET: ready }),
    row(`${models}/config`, "model-config", json, { GET: config }),
    row(`${versions}/config`, "model-config", json, { GET: config }),
    row("/v2/models/stats", "statistics", json, { GET: statistics }),
    row(`${models}/stats`, "statistics", json, { GET: statistics }),
    row(`${versions}/stats`, "statistics", json, { GET: statistics }),
    row(`${models}/infer`, "inference", plain, { POST: infer }),
    row(`${versions}/infer`, "inference", plain, { POST: infer }),
    row(`${models}/generate`, "inference", json, { POST: generate }),
    row(`${versions}/generate`, "inference", json, { POST: generate }),
    row(`${models}/generate_stream`, "inference", json, { POST: generateStream }),
    row(`${versions}/generate_stream`, "inference", json, { POST: generateStream }),
    row(pagePath, "model-repository", json, { GET: (exchange) => sendModelPage(exchange, engine) }),
    row("/v2/repository/index", "model-repository", json, { POST: index }),
    row("/v2/repository/:repository/index", "model-repository", json, { POST: index }),
    row("/v2/repository/models/:model/load", "model-repository", json, {
      POST: (exchange, [model]) => handleLoad(exchange, repository, model!),
    }),
    row("/v2/repository/models/:model/unload", "model-repository", json, {
      POST: (exchange, [model]) => handleUnload(exchange, repository, model!),
    }),
    row("/v2/repository/:repository/models/:model/load", "model-repository", json, { POST: noRepositoryNames }),
    row("/v2/repository/:repository/models/:model/unload", "model-repository", json, { POST: noRepositoryNames }),
    ...notBuilt.map(([pattern, methods, category, feature]) =>
      row(pattern, category, json, Object.fromEntries(methods.map((method) => [method, refuseNotBuilt(feature)]))),
    ),
  ];
}

function row(
  pattern: string,
  category: RestrictedApi,
  errorType: ContentType,
  methods: Readonly<Record<string, RouteHandler>>,
): Route {
  return { pattern, category, errorType, methods };
}

function replyEmpty(exchange: Exchange, status: number): void {
  reply(exchange, status, "text/plain", "");
}

/**
 * Checks a model version, which contains only digits because of the route's pattern. As in Triton, a version of more than 64 bits is
 * rejected.
 */
function parseVersion(version: string | undefined): string {
  if (version === undefined) return "";
  if (version.length > 18 && BigInt(version) >= 2n ** 63n) {
    throw new InferenceError(
      "INVALID_ARG",
      `failed to get model version from specified version string '${version}' (details: stol), version should be an integral value > 0`,
    );
  }
  return version;
}

/** Returns the target for a model of the server's own repositories. */
function targetOf(modelName: string, version: string | undefined): ModelTarget {
  return { namespace: "", modelName, modelVersion: parseVersion(version) };
}

const acceptedEncodings = ["Accept-Encoding", "gzip, deflate"] as const;

function inferHandler(options: KserveRoutesOptions): RouteHandler {
  const { engine } = options;
  const calls = new InferCalls({
    ...options,
    binaryHeaders: (jsonBytes) => [
      "Content-Type",
      "application/octet-stream",
      "Inference-Header-Content-Length",
      String(jsonBytes),
    ],
  });
  return async (exchange, [model, version]) => {
    const { headers } = exchange.request;
    const target = targetOf(model!, version);
    // The model is opened first, so that its errors are thrown before the body is read. (`using` is avoided because it costs 120 ns.)
    const opened = engine.open(target);
    try {
      const coding = requestEncoding(headers["content-encoding"]);
      if (coding === null)
        return replyError(exchange, 501, "Unsupported compression type", "text/plain", acceptedEncodings);
      const encoding = responseEncoding(headers["accept-encoding"]);
      const headerBytes = headerLength(exchange, coding === "compressed");
      const compressed = coding === "compressed";
      await calls.respond(exchange, { target, model: opened, headerBytes, compressed, encoding });
    } catch (error) {
      if (!(error instanceof InferCallError)) throw error;
      if (exchange.signal.aborted) return;
      replyFailure(exchange, error.error, error.contentType);
    } finally {
      opened[Symbol.dispose]();
    }
  };
}

/**
 * Returns the length of the JSON header; null if the whole body is JSON. As in newer versions of Triton, a value without digits is
 * rejected. Version 2.51 reads it as 0, which selects a raw request.
 */
function headerLength(exchange: Exchange, compressed: boolean): number | null {
  const got = exchange.request.headers["inference-header-content-length"];
  if (got === undefined) return null;
  const value = typeof got === "string" ? leadingInteger(got) : null;
  if (value === null) {
    throw new InferenceError("INVALID_ARG", `Unable to parse Inference-Header-Content-Length, got: ${String(got)}`);
  }
  const declared = compressed ? -1 : Number(exchange.request.headers["content-length"] ?? -1);
  if (value < 0 || (declared >= 0 && value > declared)) {
    throw new InferenceError(
      "INVALID_ARG",
      `inference header size should be in range (0, ${Math.max(declared, 0)}), got: ${String(got)}`,
    );
  }
  return value;
}

/** Returns the handler of KServe requests. */
export function kserveHandler(options: KserveRoutesOptions): (exchange: Exchange) => void | Promise<void> {
  const table = new RouteTable(routeRows(options));
  const { restrictions } = options;
  return (exchange) => {
    const match = table.match(exchange.path);
    if (match === null || isHidden(exchange)) return replyError(exchange, 404, "Not Found");
    const { row: route, values } = match;
    const restriction = restrictions.get(route.category);
    if (restriction !== undefined && exchange.request.headers[restriction.header.toLowerCase()] !== restriction.value) {
      return replyError(
        exchange,
        403,
        `This API is restricted, expecting header '${restriction.header}'`,
        route.errorType,
      );
    }
    const response = Object.hasOwn(route.methods, exchange.method) ? route.methods[exchange.method] : undefined;
    if (response === undefined) return replyError(exchange, 405, "Method Not Allowed", route.errorType);
    try {
      return response(exchange, values)?.catch((error: unknown) => refuse(exchange, error, route.errorType));
    } catch (error) {
      refuse(exchange, error, route.errorType);
    }
  };
}

/** Sends an InferenceError in the route's content type. Throws other errors, which the listener handles. */
function refuse(exchange: Exchange, error: unknown, errorType: ContentType): void {
  if (!(error instanceof InferenceError) || error instanceof BodyError) throw error;
  if (exchange.signal.aborted || exchange.response.headersSent) return;
  replyFailure(exchange, error, errorType);
}
