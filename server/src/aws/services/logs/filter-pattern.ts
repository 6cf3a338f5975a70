import { AwsError } from "../../../base/index.ts";

/**
 * Unstructured filter patterns: terms and "quoted phrases" that must all occur, `?term`s of which one must, `-term`s that must not.
 * Terms are case sensitive. An empty pattern matches all. JSON and space-delimited patterns are refused.
 */
export function parseFilterPattern(pattern: string): (message: string) => boolean {
  const text = pattern.trim();
  if (text.startsWith("{") || text.startsWith("[")) {
    throw new AwsError(
      "InvalidParameterException",
      "Invalid filter pattern: only patterns of terms are supported here",
    );
  }
  const terms = [...text.matchAll(/([-?]?)(?:"((?:[^"\\]|\\.)*)"|(\S+))/g)].map((match) => ({
    sign: match[1],
    term: match[2]?.replaceAll(/\\(.)/g, "$1") ?? match[3] ?? "",
  }));
  const withSign = (sign: string) => terms.filter((each) => each.sign === sign).map((each) => each.term);
  const [needed, optional, forbidden] = [withSign(""), withSign("?"), withSign("-")];
  return (message) =>
    needed.every((term) => message.includes(term)) &&
    (optional.length === 0 || optional.some((term) => message.includes(term))) &&
    !forbidden.some((term) => message.includes(term));
}
