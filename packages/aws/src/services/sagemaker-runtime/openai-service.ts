import type { ServerResponse } from "node:http";
import { AwsError, type Clock } from "@galatea/base";
import { hostingArn } from "@galatea/hosting";
import { anyResource, closeIfUnread, openedCall, verifiedRequest } from "../../wire/index.ts";
import type { RawExchange, RawOperationRow, RawService } from "../../wire/index.ts";
import type { RuntimeOptions } from "./invoke-endpoint.ts";
import { listModels, retrieveModel } from "./openai-models.ts";
import { forwardOpenAiCall, openOpenAiCall, type OpenAiCall } from "./openai-calls.ts";
import { allowOrigin, sendPreflightResponse } from "./openai-origins.ts";
import { openAiError } from "./openai-errors.ts";
import { openAiModel, parseOpenAiPath, type OpenAiOperation } from "./openai-routes.ts";

export interface OpenAiDependencies extends RuntimeOptions {
  readonly clock: Clock;
  /** Origins of pages that may call the API in a browser, such as `https://chat.example`. */
  readonly allowedOrigins: ReadonlySet<string>;
}

const scope = "sagemaker";

/**
 * OpenAI's API in front of endpoints. The container receives the client's request at the same path, and its response is
 * streamed to the client. The API key is a bearer token in the format of SageMaker's libraries. Requests with a SigV4
 * signature are also accepted.
 */
export function openAiService({ clock, allowedOrigins, ...options }: OpenAiDependencies) {
  const resource = ({ endpointName, context }: OpenAiCall) => hostingArn("endpoint", endpointName, context);
  const invoked: RawOperationRow<OpenAiCall> = {
    action: "sagemaker:InvokeEndpoint",
    resource,
    handle: (call) => forwardOpenAiCall(options, call),
  };
  const operations: Readonly<Record<OpenAiOperation, RawOperationRow<OpenAiCall>>> = {
    CreateChatCompletion: invoked,
    CreateCompletion: invoked,
    CreateEmbedding: invoked,
    CreateResponse: invoked,
    ListModels: {
      action: "sagemaker:ListEndpoints",
      resource: anyResource,
      handle: (call) => listModels(options, call),
    },
    RetrieveModel: {
      action: "sagemaker:DescribeEndpoint",
      resource,
      handle: (call) => retrieveModel(options, call),
    },
  };
  return {
    kind: "raw",
    protocol: "rest-json",
    model: openAiModel,
    scope,
    operations,
    setHeaders: (response, requestId) => void response.setHeader("x-request-id", requestId),
    async open(exchange) {
      const receivedNs = clock.monotonicNs();
      const isAllowed = allowOrigin(exchange.request, exchange.response, allowedOrigins);
      if (exchange.request.method === "OPTIONS") {
        const responded = () => sendPreflightResponse(exchange.request, exchange.response, isAllowed);
        return { action: "sagemaker:InvokeEndpoint", resource: anyResource, handle: responded };
      }
      const { isByToken, request } = await proven(exchange, options.requestBytesMax);
      const requested = parseOpenAiPath(request);
      if (requested === null) throw new AwsError("not_found", "There is no such path.", { statusFallback: 404 });
      const { response, context } = exchange;
      const call = await openOpenAiCall(options, { request, response, context, receivedNs }, requested);
      const opened = openedCall(operations[requested.operation], call);
      return isByToken ? { ...opened, additionalActions: ["sagemaker:CallWithBearerToken"] } : opened;
    },
    sendError: sendOpenAiError,
  } as const satisfies RawService;
}

/** Verifies a request. A bearer token does not depend on the body, so the body need not be buffered. */
async function proven(
  exchange: RawExchange,
  requestBytesMax: number,
): Promise<{ readonly isByToken: boolean; readonly request: RawExchange["request"] }> {
  const { request, response, authenticator } = exchange;
  const { authorization, expect } = request.headers;
  if (authenticator === null || !/^Bearer /i.test(authorization ?? ""))
    return { isByToken: false, request: await verifiedRequest(exchange, requestBytesMax, scope) };
  authenticator.verifyBearer(authorization);
  if (expect?.toLowerCase() === "100-continue") response.writeContinue();
  return { isByToken: true, request };
}

function sendOpenAiError({ response, context, logger, clock }: RawExchange, thrown: unknown): void {
  const { status, document } = openAiError(thrown);
  if (status === 500 && !(thrown instanceof AwsError) && !context.signal.aborted) {
    logger.error("a call of OpenAI's API failed", { error: thrown instanceof Error ? thrown.stack : String(thrown) });
  }
  if (response.headersSent || response.destroyed) return void response.destroy();
  closeIfUnread(response, clock);
  if (status === 503) response.setHeader("retry-after", "1");
  send(response, status, Buffer.from(JSON.stringify(document)));
}

function send(response: ServerResponse, status: number, body: Buffer): void {
  response.writeHead(status, { "content-type": "application/json", "content-length": body.length });
  response.end(body);
}
