import { UsageError } from "./flag.ts";

/**
 * What `--<protocol>-header-forward-pattern` finds in the names of headers, anywhere in them and in any case, as Triton's; a pattern that
 * begins with `(?-i)` is found in its own case. Null for an empty one.
 */
export function forwardPattern(pattern: string, flag: string): RegExp | null {
  if (pattern === "") return null;
  try {
    return new RegExp(pattern.replace(/^\(\?-?i\)/, ""), pattern.startsWith("(?-i)") ? "" : "i");
  } catch (error) {
    throw new UsageError(`invalid argument for --${flag}, got: ${pattern}: ${(error as Error).message}`);
  }
}
