import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Clock } from "@galatea/base";

const idleMsMax = 2000;
const checksMax = 10;

/**
 * Call this before a response that may precede the end of its request's body: the connection then ends with the
 * response. Remaining input is read and dropped until its end, until none arrives for two seconds, or for twenty
 * seconds at most. A connection that is closed with unread bytes is reset, and a client that has not read the response
 * loses it.
 */
export function closeIfUnread(response: ServerResponse, clock: Clock): void {
  const { req: request, socket } = response;
  if (request.complete || !hasBody(request.headers)) return;
  response.setHeader("Connection", "close");
  if (socket !== null) {
    const close = socket.destroySoon.bind(socket);
    let isAnswered = false;
    // Node calls this method once the last response is written.
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
      const isOver = socket.bytesRead === readBefore || lookCount === checksMax;
      readBefore = socket.bytesRead;
      if (isOver) socket.destroy();
      else timer = clock.timer(idleMsMax, look);
    };
    let timer = clock.timer(idleMsMax, look);
    socket.once("close", () => timer[Symbol.dispose]());
  }
  request.resume();
}

/** A request that is answered at once: Node has not reported the end of its body yet. */
const hasBody = (headers: IncomingHttpHeaders) =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
