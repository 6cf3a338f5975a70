import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { probeOf, sendResponse } from "@galatea/aws";
import type { LeaderLocation, LeaderProxy } from "@galatea/aws/leader-proxy";
import type { OwnInvocations } from "./own-invocations.ts";

export interface GatewayFrontOptions {
  /** Null if the gateway knows no agents: the leader serves all requests. */
  readonly own: OwnInvocations | null;
  readonly proxy: LeaderProxy;
  readonly leader: Pick<LeaderLocation, "url">;
  /** Returns whether the records have been read once. */
  readonly isReady: () => boolean;
}

/** Serves `/ping` and `/health`, which are about the gateway itself, and its own invocations. All other requests go to the leader. */
export function createGatewayFront({ own, proxy, leader, isReady }: GatewayFrontOptions) {
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    if (own?.accepts(request) === true) return own.handle(request, response);
    const page = probeOf(request);
    if (page === null) return proxy.handle(request, response);
    request.resume();
    response.setHeader("X-Content-Type-Options", "nosniff");
    response.setHeader("Cache-Control", "no-store");
    if (page === "ping") {
      const isNow = isReady();
      return sendResponse(response, isNow ? 200 : 503, "text/plain; charset=utf-8", isNow ? "" : "starting\n");
    }
    const text = `${JSON.stringify({ status: "gateway", leader: leader.url })}\n`;
    sendResponse(response, 200, "application/json", text);
  };
  return {
    attach(server: Server): void {
      server.on("request", handle).on("checkContinue", handle);
    },
  };
}
