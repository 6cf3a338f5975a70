import { parseFieldsPattern, type FieldsPattern } from "./pattern-fields.ts";
import { parseJsonPattern, type JsonPattern } from "./pattern-json.ts";
import { parsePatternRegex } from "./pattern-regex.ts";
import { invalidPattern, PatternText } from "./pattern-text.ts";

/**
 * Parses CloudWatch Logs' filter patterns: `{ $.property = value }` for JSON messages, `[field, field = value]` for
 * messages of fields between spaces, and terms. An empty pattern matches all; terms are case sensitive. Matching takes
 * time proportional to the lengths of the message and the pattern.
 */
export function compileFilterPattern(pattern: string): (message: string) => boolean {
  return parseFilterPattern(pattern).matches;
}

/** A pattern, and a reader of the values that it finds in a matching message. */
export type FilterPattern =
  | ({ readonly of: "json" } & JsonPattern)
  | ({ readonly of: "fields" } & FieldsPattern)
  | { readonly of: "terms"; readonly matches: (message: string) => boolean };

export function parseFilterPattern(pattern: string): FilterPattern {
  const text = new PatternText(pattern.trim());
  if (text.text.startsWith("{")) return { of: "json", ...parseJsonPattern(text) };
  if (text.text.startsWith("[")) return { of: "fields", ...parseFieldsPattern(text) };
  return { of: "terms", matches: parseTerms(text) };
}

interface Term {
  readonly sign: string;
  readonly isIn: (message: string) => boolean;
}

/**
 * Parses terms. Words and "quoted phrases" must all occur, at least one `?term` must occur, and no `-term` may occur.
 * `%regular expressions%` are terms, too.
 */
function parseTerms(text: PatternText): (message: string) => boolean {
  const terms: Term[] = [];
  while (!text.isAtEnd) terms.push(takeTerm(text));
  const withSign = (sign: string) => terms.filter((each) => each.sign === sign);
  const [needed, optional, forbidden] = [withSign(""), withSign("?"), withSign("-")];
  return (message) =>
    needed.every(({ isIn }) => isIn(message)) &&
    (optional.length === 0 || optional.some(({ isIn }) => isIn(message))) &&
    !forbidden.some(({ isIn }) => isIn(message));
}

function takeTerm(text: PatternText): Term {
  text.skipSpace();
  const sign = text.match(/[-?](?=\S)/)?.[0] ?? "";
  const quoted = text.match(/"((?:[^"\\]|\\.)*)"/s)?.[1];
  if (quoted !== undefined) return { sign, isIn: includes(quoted.replaceAll(/\\(.)/gs, "$1")) };
  const regex = text.match(/%((?:[^%\\]|\\.)+)%(?!\S)/s)?.[1];
  if (regex !== undefined) {
    text.countCostlyElement("regular expressions");
    return { sign, isIn: parsePatternRegex(regex) };
  }
  const word = text.match(/[^\s"]\S*/)?.[0];
  if (word === undefined) throw invalidPattern(`a quotation mark is not closed ${text.positionText()}`);
  return { sign, isIn: includes(word) };
}

function includes(term: string): (message: string) => boolean {
  return (message) => message.includes(term);
}
