import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { AwsError, type Clock, type Logger } from "@galatea/base";
import { bearerScope, credentialScope, pathOf, queryValue } from "../signing/index.ts";
import { sendAwsError, sendResponse } from "./send-response.ts";
import type { Gateway } from "./gateway.ts";
import { closeIfUnread } from "./close-if-unread.ts";
import type { WireProtocol } from "./service-table.ts";
import { writeXml } from "./xml.ts";

export interface StandbyGatewayOptions {
  /** Returns the address of the platform that is active; null: not known. */
  readonly leader: () => string | null;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Creates the gateway of a standby platform, which waits until the active platform releases its records. `/health`
 * reports that this process is alive, and `/ping` that it is not ready. Every other request receives ServiceUnavailable
 * (503) in its protocol, which clients retry.
 */
export function createStandbyGateway(options: StandbyGatewayOptions): Gateway {
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    response.setHeader("X-Content-Type-Options", "nosniff");
    response.setHeader("Cache-Control", "no-store");
    const page = probe(request);
    if (page === null) return sendUnavailable(request, response, options);
    request.resume();
    if (page === "ping") return sendResponse(response, 503, "text/plain; charset=utf-8", "standby\n");
    const text = `${JSON.stringify({ status: "standby", leader: options.leader() })}\n`;
    sendResponse(response, 200, "application/json", text);
  };
  return {
    handle,
    attach(server) {
      server.on("request", handle).on("checkContinue", handle);
    },
  };
}

/** Returns which probe an unsigned request is. A signed request with such a path is for a bucket with that name. */
function probe({ method = "GET", url = "/", headers }: IncomingMessage): "ping" | "health" | null {
  if (method !== "GET" && method !== "HEAD") return null;
  const name = /^\/(ping|health)$/.exec(pathOf(url))?.[1];
  if (name === undefined || credentialScope({ method, url, headers }) !== null) return null;
  return name === "ping" ? "ping" : "health";
}

function sendUnavailable(
  request: IncomingMessage,
  response: ServerResponse,
  { leader, clock, logger }: StandbyGatewayOptions,
): void {
  const address = leader();
  const at = address === null ? "" : ` at ${address}`;
  const text = `This platform is a standby: another platform${at} has the records and serves this request.`;
  const error = new AwsError("ServiceUnavailable", text, { statusFallback: 503 });
  const protocol = protocolOf(request);
  const requestId = randomUUID();
  if (protocol !== "rest-xml") {
    response.setHeader("x-amzn-RequestId", requestId);
    const context = { requestId, signal: new AbortController().signal };
    return sendAwsError({ response, context, errors: null, protocol, operation: "", logger, clock }, error);
  }
  closeIfUnread(response, clock);
  response.setHeader("retry-after", "1");
  response.setHeader("x-amz-request-id", requestId);
  const content = { Code: error.code, Message: text, Resource: pathOf(request.url ?? "/"), RequestId: requestId };
  sendResponse(response, 503, "application/xml", writeXml("Error", content, null));
}

/**
 * Returns the protocol in which the request's client reads errors. A request that matches no other service is for S3.
 */
function protocolOf({ method = "GET", url = "/", headers }: IncomingMessage): WireProtocol {
  if (headers["smithy-protocol"] === "rpc-v2-cbor") return "cbor";
  if (headers["x-amz-target"] !== undefined) return "json";
  const scope = (credentialScope({ method, url, headers }) ?? bearerScope(headers.authorization))?.service ?? null;
  if (scope === "s3") return "rest-xml";
  const isForm = headers["content-type"]?.startsWith("application/x-www-form-urlencoded") === true;
  const path = pathOf(url);
  if (path === "/" && (isForm || queryValue(url, "Action") !== undefined)) return "query";
  if (scope !== null || /^\/endpoints\/[^/]+\/[a-z-]*invocations/.test(path)) return "rest-json";
  return "rest-xml";
}
