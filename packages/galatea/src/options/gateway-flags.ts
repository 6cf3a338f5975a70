import { UsageError } from "./flag.ts";
import type { OptionsOf, Parsed } from "./parse-flags.ts";
import { parsedFlag } from "./flag.ts";
import { parsedDatabaseUrl } from "./platform-flags.ts";
import { checkAgentOptions, upFlags } from "./up-flags.ts";

/** The flags of `galatea gateway`. */
export const gatewayFlags = {
  host: upFlags.host,
  port: upFlags.port,
  "allowed-host": upFlags["allowed-host"],
  records: parsedFlag(
    {
      unit: "url",
      about:
        "PostgreSQL database of the platform's --records, which the gateway only reads; the password may come from PGPASSWORD or " +
        "~/.pgpass. Required",
    },
    parsedDatabaseUrl,
  ),
  agent: upFlags.agent,
  "agent-tls-cert": upFlags["agent-tls-cert"],
  "agent-tls-key": upFlags["agent-tls-key"],
  "agent-tls-ca": upFlags["agent-tls-ca"],
  credentials: upFlags.credentials,
  open: upFlags.open,
  insecure: upFlags.insecure,
  region: upFlags.region,
  account: upFlags.account,
  "request-memory-bytes": upFlags["request-memory-bytes"],
};

type GatewayFlagOptions = OptionsOf<typeof gatewayFlags>;

/** The options of `galatea gateway`, checked against each other. */
export interface GatewayCommandOptions extends GatewayFlagOptions {
  readonly records: string;
}

export function gatewayOptions({ options }: Parsed<GatewayFlagOptions>): GatewayCommandOptions {
  const { records } = options;
  if (records === null) throw new UsageError(`galatea gateway needs --records: ${gatewayFlags.records.about}`);
  checkAgentOptions(options);
  return { ...options, records, open: options.open || options.insecure };
}
