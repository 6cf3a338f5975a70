import { toQueryText } from "./functions.ts";
import type { QueryCommand, QueryValue } from "./query.ts";
import { LinearTimeRegex } from "./search-expression.ts";

type Parse = Extract<QueryCommand, { readonly do: "parse" }>;

/**
 * Returns the parser of a `parse` command. The parser returns the values in the order of `names`, or null for a text
 * without a match.
 */
export function createFieldParser({ pattern, names }: Parse): (value: QueryValue) => readonly (string | null)[] | null {
  if (pattern.kind === "glob") return globParser(pattern.text);
  const search = new LinearTimeRegex(pattern.text);
  const named = search.names.some((name) => name !== null);
  const positions = names.map((name, index) => (named ? search.names.indexOf(name) : index) + 1);
  return (value) => {
    const found = value === null ? null : search.find(toQueryText(value));
    return found === null ? null : positions.map((position) => (position === 0 ? null : (found[position] ?? null)));
  };
}

/** Each `*` matches the shortest text before the next literal; the last `*` matches the remaining text. */
function globParser(glob: string): (value: QueryValue) => readonly (string | null)[] | null {
  const [first = "", ...rest] = glob.split("*");
  return (value) => {
    if (value === null) return null;
    const text = toQueryText(value);
    const begin = text.indexOf(first);
    if (begin === -1) return null;
    const found: string[] = [];
    let at = begin + first.length;
    for (const [index, segment] of rest.entries()) {
      const isOpen = segment === "" && index === rest.length - 1;
      const end = isOpen ? text.length : text.indexOf(segment, at);
      if (end === -1) return null;
      found.push(text.slice(at, end));
      at = end + segment.length;
    }
    return found;
  };
}
