import type { EndpointOptions } from "../options/index.ts";
import { withPlatformClient, type PlatformClient } from "./platform-client.ts";

interface EndpointResponse {
  readonly EndpointStatus: string;
  readonly FailureReason?: string;
}

const waitSeconds = 20;

/**
 * Runs `galatea endpoint stop NAME` or `galatea endpoint start NAME`. `start` resolves when the endpoint is in service
 * again.
 */
export function endpoint(options: EndpointOptions): Promise<number> {
  const { verb, name } = options;
  return withPlatformClient("endpoint", options, async (client) => {
    const path = `/galatea/endpoints/${encodeURIComponent(name)}`;
    const requested = (await client.request("POST", `${path}/${verb}`)) as EndpointResponse;
    const settled = verb === "start" ? await started(client, path) : requested;
    const reason = settled.FailureReason === undefined ? "" : `: ${settled.FailureReason}`;
    process.stdout.write(`${name} is ${settled.EndpointStatus}${reason}\n`);
    return settled.EndpointStatus === "Failed" ? 1 : 0;
  });
}

async function started(client: PlatformClient, path: string): Promise<EndpointResponse> {
  for (;;) {
    const found = (await client.request("GET", `${path}?wait=${waitSeconds}`)) as EndpointResponse;
    if (found.EndpointStatus !== "Creating") return found;
  }
}
