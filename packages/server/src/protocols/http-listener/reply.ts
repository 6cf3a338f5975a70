import type { InferenceCode, InferenceError, InferenceReason } from "@galatea/base";
import type { Exchange } from "./exchange.ts";

/** HTTP statuses by inference code. */
export const statusOfCode: Readonly<Record<InferenceCode, number>> = {
  UNKNOWN: 400,
  INTERNAL: 500,
  NOT_FOUND: 404,
  INVALID_ARG: 400,
  UNAVAILABLE: 503,
  UNSUPPORTED: 501,
  ALREADY_EXISTS: 400,
  CANCELLED: 400,
};

/** HTTP statuses by reason, which take precedence over those by code. The status of `out-of-memory` applies only to the container API. */
export const statusOfReason: Readonly<Partial<Record<InferenceReason, number>>> = {
  "memory-full": 503,
  "memory-exceeded": 413,
};

/**
 * Header of responses that report a lack of memory for requests. Such memory is free again after a few executions, so a client may retry
 * soon.
 */
const retryAfter: ExtraHeaders = ["Retry-After", "1"];

/** Reason phrases as Triton sends them, where they differ from Node's. */
const reasonPhrases: Readonly<Record<number, string>> = {
  200: "OK",
  400: "Bad Request",
  404: "Not Found",
  405: "Not Allowed",
  408: "Request Timeout",
  409: "Conflict",
  413: "Payload Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
  507: "Insufficient Storage",
};

export type ContentType = "application/json" | "text/plain";

/** Headers besides content-type and content-length, as a flat list: name, value, name, value. */
export type ExtraHeaders = readonly string[];

const noHeaders: ExtraHeaders = [];

/**
 * Sends `body` and ends the exchange. The headers are passed as one flat array, which avoids Node's header table. A string body (latin1:
 * each character is one byte) is sent in the same write as the head.
 */
export function reply(
  exchange: Exchange,
  status: number,
  contentType: string,
  body: string | Uint8Array,
  extraHeaders: ExtraHeaders = noHeaders,
): void {
  writeHead(exchange, status, ["Content-Type", contentType, ...extraHeaders, "Content-Length", String(body.length)]);
  const { response } = exchange;
  if (typeof body === "string") response.end(body, "latin1");
  else response.end(body);
  // Charges bytes that the kernel has not accepted yet, because the client reads slowly.
  const { writableLength } = response;
  if (writableLength > 0) exchange.memory.growUnchecked(writableLength);
}

/** Sends several chunks without joining them. The caller charges their memory, and may free it after `exchange.onClosed`. */
export function replyChunks(
  exchange: Exchange,
  status: number,
  headers: string[],
  chunks: readonly Uint8Array[],
): void {
  let byteLength = 0;
  for (const chunk of chunks) byteLength += chunk.length;
  headers.push("Content-Length", String(byteLength));
  writeHead(exchange, status, headers);
  const { response } = exchange;
  response.cork();
  for (const chunk of chunks) if (chunk.length > 0) response.write(chunk);
  response.uncork();
  response.end();
}

/** Sends the status line and the headers, without the default headers of Node that Triton does not send. */
export function writeHead(exchange: Exchange, status: number, headers: string[]): void {
  const { response } = exchange;
  // Triton sends no Date header, and a Connection header only when HTTP/1.1 requires it.
  response.sendDate = false;
  if (response.shouldKeepAlive && exchange.request.httpVersionMinor === 1) response.removeHeader("connection");
  response.writeHead(status, reasonPhrases[status] ?? "Unknown", headers);
}

/** Returns the JSON body of an error. Characters other than ASCII are sent as UTF-8. */
export function errorBody(message: string): string {
  return Buffer.from(`{"error":${JSON.stringify(message)}}`).toString("latin1");
}

/** Sends an error in the protocol's format: an object with the single key `error`. */
export function replyError(
  exchange: Exchange,
  status: number,
  message: string,
  contentType: ContentType = "text/plain",
  extraHeaders: ExtraHeaders = noHeaders,
): void {
  reply(exchange, status, contentType, errorBody(message), extraHeaders);
}

/** Sends an error with the status of its reason or code, and with Retry-After when a retry may succeed. */
export function replyFailure(
  exchange: Exchange,
  error: InferenceError,
  contentType: ContentType = "text/plain",
  status = httpStatusOf(error),
): void {
  replyError(exchange, status, error.message, contentType, retryHeaders(error));
}

export function httpStatusOf({ code, reason }: InferenceError): number {
  return (reason === null ? undefined : statusOfReason[reason]) ?? statusOfCode[code];
}

export function retryHeaders(error: InferenceError): ExtraHeaders {
  return error.reason === "memory-full" ? retryAfter : noHeaders;
}

export function replyJson(exchange: Exchange, value: unknown): void {
  reply(exchange, 200, "application/json", Buffer.from(JSON.stringify(value)));
}
