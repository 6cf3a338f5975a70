import type { UpOptions } from "../app/index.ts";
import type { Flag, ParsedFlags } from "./flags.ts";

export const upFlags: readonly Flag[] = [
  { name: "host", kind: "string", default: "127.0.0.1", about: "address to listen on" },
  { name: "port", kind: "integer", default: 8770, min: 0, about: "the one port of every service" },
  { name: "data", kind: "string", about: "where records, objects and caches live (default: ~/.local/share/galatea)" },
];

export function upOptions(parsed: ParsedFlags): UpOptions {
  return {
    host: parsed.values.get("host") as string,
    port: parsed.values.get("port") as number,
    dataDirectory: (parsed.values.get("data") as string | undefined) ?? null,
  };
}

export const envOptions = upOptions;
