import { UsageError } from "./flag.ts";

/** Checks and returns the address of a container engine's socket. Throws UsageError. */
export function parsedEngineAddress(text: string, flag: string): string {
  if (/^unix:\/\/\/./.test(text)) return text;
  throw new UsageError(`invalid value for --${flag}: it has to be a socket like unix:///var/run/docker.sock`);
}
