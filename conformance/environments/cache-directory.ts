import { homedir } from "node:os";
import { join } from "node:path";

/** Returns the directory of everything that is created for tests, as the environment of the entry point defines it. */
export function cacheDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  return join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "galatea");
}
