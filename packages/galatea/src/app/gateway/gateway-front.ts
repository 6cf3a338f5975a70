import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { probeOf, sendResponse } from "@galatea/aws";
import type { LeaderLocation, LeaderProxy } from "@galatea/aws/leader-proxy";

export interface GatewayFrontOptions {
  readonly proxy: LeaderProxy;
  readonly leader: Pick<LeaderLocation, "url">;
  /** Returns whether the records have been read once. */
  readonly isReady: () => boolean;
}

/** Serves `/ping` and `/health`, which are about the gateway itself. All other requests go to the leader. */
export function createGatewayFront({ proxy, leader, isReady }: GatewayFrontOptions) {
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
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
