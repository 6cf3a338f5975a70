import { homedir } from "node:os";
import { join } from "node:path";

/** Where what is made for tests is kept, by the environment that an entry point passes in. */
export function cacheDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  return join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "galatea");
}
