import type { Socket } from "node:net";
import type { LiveExchange } from "./exchange.ts";
import { errorBody } from "./reply.ts";
import { codingText } from "./transfer-coding.ts";

const lingerMsMax = 2000;

/** Connections that will be closed after the response that is being sent. */
const ending = new WeakSet<Socket>();

/**
 * Returns whether the connection is closed after the response that is being sent. Further requests on such a connection are discarded and
 * never executed.
 */
export function isConnectionEnding(socket: Socket): boolean {
  return ending.has(socket);
}

/**
 * Reads and discards what a rejected client still sends, for a limited time. Without this, Node would destroy the connection with its
 * unread data after the last response. The client would then get a connection reset and lose the response.
 */
export function lingerAfterReply(socket: Socket, timeoutMs: number): void {
  if (ending.has(socket)) return;
  ending.add(socket);
  let lingers = false;
  socket.destroySoon = () => {
    if (socket.destroyed || lingers) return;
    lingers = true;
    const end = setTimeout(() => socket.destroy(), Math.min(timeoutMs, lingerMsMax));
    socket.once("close", () => clearTimeout(end));
    socket.end();
    socket.resume();
  };
}

const clientErrors: Readonly<Record<string, readonly [status: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", "request header lines exceed the maximum allowed size"],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "the request header did not arrive in time"],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ["413 Payload Too Large", "chunk extensions exceed the maximum allowed size"],
};

/**
 * Handles invalid HTTP. Requests before the invalid bytes get their responses, in order; then the connection is closed. If there are no
 * such requests, sends an error response. Ignores data after the invalid bytes, because Node's parser does not recover and calls this
 * function again for every further chunk.
 */
export function onClientError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  live: readonly LiveExchange[],
  stallTimeoutMs: number,
): void {
  if (ending.has(socket) && error.code !== "ECONNRESET") return;
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const awaited = live.filter(({ request, response }) => request.complete || response.writableEnded);
  const last = awaited.at(-1);
  // A client that has closed its side of the connection does not wait for responses.
  if (last !== undefined && error.code !== "HPE_INVALID_EOF_STATE") {
    lingerAfterReply(socket, stallTimeoutMs);
    last.response.shouldKeepAlive = false;
    // The head of the last response may have been sent already, without `Connection: close`.
    last.onClosed(() => socket.destroySoon());
    return;
  }
  // A response has begun. The client would interpret an error response as a part of its body.
  if (last !== undefined || live.some(({ response }) => response.headersSent)) {
    socket.destroy();
    return;
  }
  const [status, message] = clientErrors[error.code ?? ""] ?? ["400 Bad Request", malformedText(error)];
  const body = errorBody(message);
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    "latin1",
    () => socket.destroy(),
  );
}

function malformedText(error: NodeJS.ErrnoException): string {
  const head = headOf((error as { rawPacket?: Buffer }).rawPacket);
  const length = valueOf(head, "content-length");
  const coding = valueOf(head, "transfer-encoding");
  if (error.code === "HPE_INVALID_CONTENT_LENGTH" || error.code === "HPE_INVALID_TRANSFER_ENCODING") {
    if (length !== null && coding !== null) return "Content-Length and Transfer-Encoding must not both be given";
    if (error.code === "HPE_INVALID_CONTENT_LENGTH") return `Unable to parse Content-Length, got: ${length ?? ""}`;
    if (coding !== null) return codingText(coding);
  }
  return `malformed HTTP request: ${error.message}`;
}

/** Returns the complete header lines of the packet that contains invalid HTTP. */
function headOf(packet: Buffer | undefined): string {
  const text = packet?.toString("latin1") ?? "";
  const end = text.indexOf("\r\n\r\n");
  return end === -1 ? text : text.slice(0, end);
}

function valueOf(head: string, name: "content-length" | "transfer-encoding"): string | null {
  const pattern =
    name === "content-length"
      ? /\r\ncontent-length:[ \t]*([^\r\n]{0,100})/i
      : /\r\ntransfer-encoding:[ \t]*([^\r\n]{0,100})/i;
  return pattern.exec(head)?.[1] ?? null;
}
