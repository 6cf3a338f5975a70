import type { IncomingMessage, ServerResponse } from "node:http";
import type { Gateway } from "./gateway.ts";
import { probeOf } from "./probes.ts";
import { sendResponse } from "./send-response.ts";
import { sendUnavailable, type UnavailableOptions } from "./send-unavailable.ts";

export interface StandbyGatewayOptions extends UnavailableOptions {
  /** Returns the address of the platform that is active; null: not known. */
  readonly leader: () => string | null;
}

/**
 * Creates the gateway of a standby platform, which waits until the active platform releases its records. `/health`
 * reports that this process is alive, and `/ping` that it is not ready. Every other request receives ServiceUnavailable
 * (503) in its protocol, which clients retry.
 */
export function createStandbyGateway(options: StandbyGatewayOptions): Gateway {
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    response.setHeader("X-Content-Type-Options", "nosniff");
    response.setHeader("Cache-Control", "no-store");
    const page = probeOf(request);
    if (page === null) return sendUnavailable(request, response, standbyText(options.leader()), options);
    request.resume();
    if (page === "ping") return sendResponse(response, 503, "text/plain; charset=utf-8", "standby\n");
    const text = `${JSON.stringify({ status: "standby", leader: options.leader() })}\n`;
    sendResponse(response, 200, "application/json", text);
  };
  return {
    handle,
    attach(server) {
      server.on("request", handle).on("checkContinue", handle);
    },
  };
}

function standbyText(leader: string | null): string {
  const at = leader === null ? "" : ` at ${leader}`;
  return `This platform is a standby: another platform${at} has the records and serves this request.`;
}
