import { UsageError } from "./flag.ts";

/**
 * Returns the regular expression of `--<protocol>-header-forward-pattern`; null for an empty pattern. As in Triton, it
 * matches anywhere in a header name, and ignores case unless it begins with `(?-i)`.
 */
export function forwardPattern(pattern: string, flag: string): RegExp | null {
  if (pattern === "") return null;
  try {
    return new RegExp(pattern.replace(/^\(\?-?i\)/, ""), pattern.startsWith("(?-i)") ? "" : "i");
  } catch (error) {
    throw new UsageError(`invalid argument for --${flag}, got: ${pattern}: ${(error as Error).message}`);
  }
}
