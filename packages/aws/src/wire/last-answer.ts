import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Clock } from "@galatea/base";

const quietMs = 2000;
const looksMax = 10;

/**
 * To be called before an answer that may come before its request's body has: the connection then ends with it. What the client still
 * sends is read and dropped until that is all, until none of it comes for two seconds, or for twenty at most. A connection that is
 * closed over unread bytes is reset, and the reset takes the answer away from a client that has not read it yet.
 */
export function closeIfUnread(response: ServerResponse, clock: Clock): void {
  const { req: request, socket } = response;
  if (request.complete || !hasBody(request.headers)) return;
  response.setHeader("Connection", "close");
  if (socket !== null) {
    const close = socket.destroySoon.bind(socket);
    let isAnswered = false;
    // What node calls once the last answer is written.
    socket.destroySoon = () => {
      isAnswered = true;
      if (request.complete) close();
      else socket.end();
    };
    request.once("end", () => {
      if (isAnswered) close();
    });
    let readBefore = socket.bytesRead;
    let lookCount = 0;
    const look = () => {
      lookCount += 1;
      const isOver = socket.bytesRead === readBefore || lookCount === looksMax;
      readBefore = socket.bytesRead;
      if (isOver) socket.destroy();
      else timer = clock.timer(quietMs, look);
    };
    let timer = clock.timer(quietMs, look);
    socket.once("close", () => timer[Symbol.dispose]());
  }
  request.resume();
}

/** Of a request that is answered at once, node has not said yet that nothing follows its head. */
const hasBody = (headers: IncomingHttpHeaders) =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
