import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { AwsError, type Clock, type Logger } from "@galatea/base";
import { bearerScope, credentialScope, pathOf, queryValue } from "../signing/index.ts";
import { closeIfUnread } from "./close-if-unread.ts";
import { sendAwsError, sendResponse } from "./send-response.ts";
import type { WireProtocol } from "./service-table.ts";
import { writeXml } from "./xml.ts";

export interface UnavailableOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Sends ServiceUnavailable (503) in the protocol of the request, which clients retry. Does not read the request's body. */
export function sendUnavailable(
  request: IncomingMessage,
  response: ServerResponse,
  text: string,
  { clock, logger }: UnavailableOptions,
): void {
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
