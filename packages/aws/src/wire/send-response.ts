import type { ServerResponse } from "node:http";
import { AwsError, systemClock, unreachable, type Clock, type Logger } from "@galatea/base";
import { SignatureFailure } from "../signing/index.ts";
import type { ServiceModel } from "../spec/index.ts";
import { encodeCbor } from "./cbor.ts";
import type { OperationProtocol } from "./service-table.ts";
import { toAwsError, errorDocument, wireError, type ServiceErrors } from "./errors.ts";
import { closeIfUnread } from "./close-if-unread.ts";
import type { CallContext } from "./service-row.ts";
import { writeXml } from "./xml.ts";

/** The response to which an error is sent, and the error's format. */
export interface ErrorTarget {
  readonly response: ServerResponse;
  readonly context: Pick<CallContext, "requestId" | "signal">;
  /** Null for an unknown service. */
  readonly errors: ServiceErrors | null;
  readonly protocol: OperationProtocol | "rest-json";
  /** The operation's name, for the log. */
  readonly operation: string;
  readonly logger: Logger;
  readonly clock?: Clock;
}

/**
 * Sends an error in the protocol of the request. Logs errors that are bugs. If the response has already begun, closes
 * the connection.
 */
export function sendAwsError(reply: ErrorTarget, thrown: unknown): void {
  const { response, context, errors, protocol } = reply;
  if (!(thrown instanceof AwsError || thrown instanceof SignatureFailure || context.signal.aborted)) {
    const stack = thrown instanceof Error ? thrown.stack : String(thrown);
    reply.logger.error("an operation failed", { operation: reply.operation, error: stack });
  }
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  closeIfUnread(response, reply.clock ?? systemClock);
  const model = errors?.model ?? null;
  const error = wireError(errors, toAwsError(thrown, protocol));
  if (error.status === 503) response.setHeader("retry-after", "1");
  if (protocol === "query") {
    const detail = { Type: error.fault ? "Receiver" : "Sender", Code: error.code, Message: error.message };
    const content = { Error: detail, RequestId: context.requestId };
    const text = writeXml("ErrorResponse", content, model?.xmlNamespace ?? null);
    return sendResponse(response, error.status, "text/xml", text);
  }
  if (model?.queryCompatible === true) {
    response.setHeader("x-amzn-query-error", `${error.code};${error.fault ? "Receiver" : "Sender"}`);
  }
  const document = errorDocument(model, error);
  switch (protocol) {
    case "cbor":
      response.setHeader("smithy-protocol", "rpc-v2-cbor");
      return sendResponse(response, error.status, "application/cbor", encodeCbor(document));
    case "rest-json":
      response.setHeader("x-amzn-errortype", error.type);
      return sendResponse(response, error.status, "application/json", JSON.stringify(document));
    case "json":
      response.setHeader("x-amzn-errortype", error.type);
      return sendResponse(response, error.status, jsonType(model), JSON.stringify(document));
    default:
      return unreachable(protocol);
  }
}

export const jsonType = (model: ServiceModel | null) => `application/x-amz-json-${model?.jsonVersion ?? "1.1"}`;

export function sendResponse(
  response: ServerResponse,
  status: number,
  contentType: string,
  content: string | Buffer,
): void {
  const body = Buffer.from(content);
  // The head is already sent if spaces for keep-alive preceded the document.
  if (response.headersSent) return void response.end(body);
  response.writeHead(status, { "Content-Type": contentType, "Content-Length": body.byteLength });
  response.end(body);
}
