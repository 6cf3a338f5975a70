import { isIP } from "node:net";
import type { UpOptions } from "../app/index.ts";
import { dataDefault, portMax, UsageError, type Flag, type ParsedFlags } from "./flags.ts";

const host = { name: "host", kind: "string", default: "127.0.0.1" } as const;
const port = { name: "port", kind: "integer", default: 8770, max: portMax } as const;
const data = { name: "data", kind: "string" } as const;

export const upFlags: readonly Flag[] = [
  { ...host, about: "address to listen on" },
  { ...port, min: 0, about: "the one port of every service; 0 takes any free one" },
  { ...data, about: `where records, objects and caches live (default: ${dataDefault})` },
];

/** The flags of `env` say where the platform is: what it listens on with port 0 nobody can know from here. */
export const envFlags: readonly Flag[] = [
  { ...host, about: "name or address that clients reach the platform by" },
  { ...port, min: 1, about: "the platform's port" },
  { ...data, about: `the platform's data directory, where the clients' files are written (default: ${dataDefault})` },
];

/** The flags of `up` and of `env`, which have the same names. */
export function upOptions(parsed: ParsedFlags): UpOptions {
  return {
    host: parsedHost(parsed.values.get("host") as string),
    port: parsed.values.get("port") as number,
    dataDirectory: (parsed.values.get("data") as string | undefined) ?? null,
  };
}

/** An address as it is, without the brackets it has in URLs, or a name. */
function parsedHost(text: string): string {
  const address = /^\[(.*)\]$/.exec(text)?.[1] ?? text;
  // A zone (fe80::1%eth0) has no place in a URL.
  if (isIP(address) !== 0 && !address.includes("%")) return address;
  if (/^[\w-]+(\.[\w-]+)*\.?$/.test(text)) return text;
  throw new UsageError(`invalid value for --host: '${text}' is neither a name nor an address`);
}
