import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Clock } from "@galatea/base";

const idleMsMax = 2000;
const checksMax = 10;

/**
 * Makes the connection end with the response. Call this before a response that may precede the end of its request's
 * body.
 *
 * After the response, the remaining input is read and dropped. This ends with the body, after two seconds without
 * input, or after twenty seconds at most. Closing a connection with unread bytes resets it, and a client that has not
 * read the response then loses it.
 */
export function closeIfUnread(response: ServerResponse, clock: Clock): void {
  const { req: request, socket } = response;
  if (request.complete || !hasBody(request.headers)) return;
  response.setHeader("Connection", "close");
  if (socket !== null) {
    const close = socket.destroySoon.bind(socket);
    let hasResponse = false;
    // Node calls this method once it has written the last response.
    socket.destroySoon = () => {
      hasResponse = true;
      if (request.complete) close();
      else socket.end();
    };
    request.once("end", () => {
      if (hasResponse) close();
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

/** Needed for a request that is answered at once, when Node has not yet reported the end of its body. */
const hasBody = (headers: IncomingHttpHeaders) =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
