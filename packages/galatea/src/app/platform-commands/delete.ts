import type { PlatformAddressOptions } from "../../options/index.ts";
import { withPlatformClient, PlatformRequestError, type PlatformClient } from "../platform-client.ts";
import type { Named } from "./flags.ts";
import { kindOf, recordKinds } from "./listing.ts";

const waitSeconds = 20;

/** Runs `galatea delete NAME`, which deletes an endpoint and resolves when its instances have ended. */
export function deleteEndpoint(options: Named<PlatformAddressOptions>): Promise<number> {
  return withPlatformClient("delete", options, async (client) => {
    const { name } = options;
    try {
      await client.call("sagemaker", "DeleteEndpoint", { EndpointName: name });
    } catch (error) {
      await kindOf(client, name, [recordKinds.endpoints]);
      throw error;
    }
    while (await isDeleting(client, name));
    process.stdout.write(`endpoint '${name}' is deleted\n`);
    return 0;
  });
}

/** Waits up to `waitSeconds` until a deletion has ended. Resolves with true if the deletion is still in progress. */
async function isDeleting(client: PlatformClient, name: string): Promise<boolean> {
  try {
    const path = `/galatea/endpoints/${encodeURIComponent(name)}?wait=${waitSeconds}`;
    return ((await client.request("GET", path)) as { readonly EndpointStatus: string }).EndpointStatus === "Deleting";
  } catch (error) {
    if (error instanceof PlatformRequestError && error.code === "ValidationException") return false;
    throw error;
  }
}
