import type { Socket } from "node:net";
import type { LiveExchange } from "./exchange.ts";
import { errorBody } from "./reply.ts";
import { codingText } from "./transfer-coding.ts";

const lingerMsMax = 2000;

/** Connections that end after a response that is being sent. */
const ending = new WeakSet<Socket>();

/** Returns whether the connection ends after a response that is being sent: a further request on it is dropped, never executed. */
export function isEnding(socket: Socket): boolean {
  return ending.has(socket);
}

/**
 * Reads and drops what a rejected client still sends, for a while; otherwise it would get a reset and lose the response. Replaces Node's
 * behavior after the last response of a connection, which is to destroy it with its unread data.
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
 * Handles invalid HTTP. Complete requests before the invalid bytes get their responses in order, and the connection ends with the last of
 * these; data after them is never read, because Node's parser stays in its error. Without such requests the invalid bytes get an error
 * response in the protocol's format. Node calls this once for every further chunk of such a connection.
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
  // A client that has closed its side counts as gone.
  if (last !== undefined && error.code !== "HPE_INVALID_EOF_STATE") {
    lingerAfterReply(socket, stallTimeoutMs);
    last.response.shouldKeepAlive = false;
    // Its head may have been sent already without `Connection: close`.
    last.onClosed(() => socket.destroySoon());
    return;
  }
  // A response now would be taken for a part of the one that has begun.
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

/** Returns the complete header lines of the faulty packet. */
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
