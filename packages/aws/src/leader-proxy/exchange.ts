import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import type { Clock } from "@galatea/base";
import { closeIfUnread } from "../wire/index.ts";
import type { UnsentRequest } from "./leader-connections.ts";
import { passedHeaders } from "./passed-headers.ts";

/** The error of a request that was sent, and whose response did not begin. */
export class LeaderLost extends Error {
  constructor(cause: unknown) {
    super(
      "The connection to the platform that has the records broke before a response. It may have performed the request.",
      {
        cause,
      },
    );
    this.name = "LeaderLost";
  }
}

export interface PassedExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Aborts when the client has closed the connection, or has received the whole response. */
  readonly disconnected: AbortSignal;
  readonly clock: Clock;
}

/** Time without any byte after which a connection is closed, in milliseconds. The leader's port has the same limit. */
const stallMsMax = 120_000;

/** Sends a request and passes its response on. Rejects with LeaderLost, or with the error of a response that ends early. */
export async function exchange(
  sent: UnsentRequest,
  { request, response, disconnected, clock }: PassedExchange,
): Promise<void> {
  const reply = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.once("response", resolve);
    sent.on("error", (error) => reject(new LeaderLost(error)));
    sent.setTimeout(stallMsMax, () => sent.destroy(new Error(`no byte for ${stallMsMax} ms`)));
    disconnected.addEventListener("abort", () => sent.destroy(), { once: true });
    if (request.headers.expect?.toLowerCase() === "100-continue") {
      // The client sends its body only when the leader accepts the head.
      sent.once("continue", () => {
        response.writeContinue();
        request.pipe(sent);
      });
      sent.flushHeaders();
    } else request.pipe(sent);
  });
  // The leader rejects the request before it has read the body.
  if (!request.complete) request.unpipe(sent);
  closeIfUnread(response, clock);
  response.writeHead(reply.statusCode ?? 502, reply.statusMessage, passedHeaders(reply.rawHeaders));
  response.flushHeaders();
  await pipeline(reply, response);
}
