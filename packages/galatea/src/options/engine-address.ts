import { UsageError } from "./flag.ts";

/** Returns the address of a container engine's socket. */
export function parsedEngineAddress(text: string, flag: string): string {
  if (/^unix:\/\/\/./.test(text)) return text;
  throw new UsageError(`invalid value for --${flag}: it has to be a socket like unix:///var/run/docker.sock`);
}
