import type { InferenceCode, InferenceError, InferenceReason } from "@galatea/base";
import type { Exchange } from "./exchange.ts";

/** One table from the inference vocabulary to HTTP. */
const statusOfCode: Readonly<Record<InferenceCode, number>> = {
  UNKNOWN: 400,
  INTERNAL: 500,
  NOT_FOUND: 404,
  INVALID_ARG: 400,
  UNAVAILABLE: 503,
  UNSUPPORTED: 501,
  ALREADY_EXISTS: 400,
  CANCELLED: 400,
};

/** Where an error's reason says more than its code. `out-of-memory` does so in the container contract only. */
const statusOfReason: Readonly<Partial<Record<InferenceReason, number>>> = {
  "memory-full": 503,
  "memory-exceeded": 413,
};

/** When to come again: memory for requests is held for the time of some executions, not of minutes. */
const retryAfter: ExtraHeaders = ["Retry-After", "1"];

/** As Triton words them, which is not always node's wording. */
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

/** Headers besides content-type and content-length, flat: name, value, name, value. */
export type ExtraHeaders = readonly string[];

const noHeaders: ExtraHeaders = [];

/**
 * Sends `body` and ends the exchange. Headers go out as a flat array in one call, which skips node's header table;
 * a string body (latin1: each character is one byte) leaves in the same write as the head.
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
  // What the client's kernel has not taken at once waits here for a slow reader.
  const { writableLength } = response;
  if (writableLength > 0) exchange.memory.growAnyway(writableLength);
}

/** Sends several pieces, whose memory the caller accounts for, without joining them; `exchange.onClosed` tells when none of them is needed any more. */
export function replyPieces(
  exchange: Exchange,
  status: number,
  headers: string[],
  pieces: readonly Uint8Array[],
): void {
  let byteLength = 0;
  for (const piece of pieces) byteLength += piece.length;
  headers.push("Content-Length", String(byteLength));
  writeHead(exchange, status, headers);
  const { response } = exchange;
  response.cork();
  for (const piece of pieces) if (piece.length > 0) response.write(piece);
  response.uncork();
  response.end();
}

/** Sends the status line and the headers, with none that Triton does not send. */
export function writeHead(exchange: Exchange, status: number, headers: string[]): void {
  const { response } = exchange;
  // As Triton: no Date, and no Connection line where HTTP/1.1 needs none. (node would add three lines to each reply.)
  response.sendDate = false;
  if (response.shouldKeepAlive && exchange.request.httpVersionMinor === 1) response.removeHeader("connection");
  response.writeHead(status, reasonPhrases[status] ?? "Unknown", headers);
}

/** JSON.stringify escapes what must be escaped; bytes beyond ASCII go out as UTF-8. */
export function errorBody(message: string): string {
  return Buffer.from(`{"error":${JSON.stringify(message)}}`).toString("latin1");
}

/** The one error shape of the protocol: an object with the single key `error`. */
export function replyError(
  exchange: Exchange,
  status: number,
  message: string,
  contentType: ContentType = "text/plain",
  extraHeaders: ExtraHeaders = noHeaders,
): void {
  reply(exchange, status, contentType, errorBody(message), extraHeaders);
}

/** The error on its reason's or its code's status; a client that may come again is told so. */
export function replyFailure(
  exchange: Exchange,
  error: InferenceError,
  contentType: ContentType = "text/plain",
  status = statusOf(error),
): void {
  replyError(exchange, status, error.message, contentType, headersOf(error));
}

export function statusOf({ code, reason }: InferenceError): number {
  return (reason === null ? undefined : statusOfReason[reason]) ?? statusOfCode[code];
}

export function headersOf(error: InferenceError): ExtraHeaders {
  return error.reason === "memory-full" ? retryAfter : noHeaders;
}

export function replyJson(exchange: Exchange, value: unknown): void {
  reply(exchange, 200, "application/json", Buffer.from(JSON.stringify(value)));
}
