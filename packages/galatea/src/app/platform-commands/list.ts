import { withPlatformClient } from "../platform-client.ts";
import type { ListingOptions } from "./flags.ts";
import { recordKinds, listed } from "./listing.ts";
import { tableText } from "./table.ts";

/** Runs `galatea list`, which prints the endpoints or the models of a platform. */
export function list(options: ListingOptions): Promise<number> {
  return withPlatformClient("list", options, async (client) => {
    const kind = options.models ? recordKinds.models : recordKinds.endpoints;
    const rows = await listed(client, kind);
    if (options.json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
    else if (rows.length === 0) process.stdout.write(`${client.platform.url} has no ${kind.word}s\n`);
    else process.stdout.write(tableText(rows, ["name", "status", "created", "reason"]));
    return 0;
  });
}
