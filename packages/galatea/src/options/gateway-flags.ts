import { parsedFlag, portFlag, UsageError } from "./flag.ts";
import type { OptionsOf, Parsed } from "./parse-flags.ts";
import { parsedDatabaseUrl, parsedName, platformDefaults } from "./platform-flags.ts";

/** The flags of `galatea gateway`. */
export const gatewayFlags = {
  host: parsedFlag({ default: platformDefaults.host, about: "address to listen on" }, parsedName),
  port: portFlag({ default: platformDefaults.port, about: "the one port of every service; 0 takes any free one" }),
  records: parsedFlag(
    {
      unit: "url",
      about:
        "PostgreSQL database of the platform's --records, which the gateway only reads; the password may come from PGPASSWORD or " +
        "~/.pgpass. Required",
    },
    parsedDatabaseUrl,
  ),
};

type GatewayFlagOptions = OptionsOf<typeof gatewayFlags>;

/** The options of `galatea gateway`, checked against each other. */
export interface GatewayCommandOptions extends GatewayFlagOptions {
  readonly records: string;
}

export function gatewayOptions({ options }: Parsed<GatewayFlagOptions>): GatewayCommandOptions {
  const { records } = options;
  if (records === null) throw new UsageError(`galatea gateway needs --records: ${gatewayFlags.records.about}`);
  return { ...options, records };
}
