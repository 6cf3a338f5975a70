import { type PatternText, invalidPattern } from "./pattern-text.ts";
import { matchesComparison, readPatternComparison, readPatternValue } from "./pattern-values.ts";

type FieldCondition = (field: string) => boolean;
interface NamedField {
  readonly name: string;
  readonly matches: FieldCondition;
}
/** A field of a pattern; "rest" (`...`) matches any number of fields. */
type FieldPattern = NamedField | "rest";

export interface FieldsPattern {
  readonly matches: (message: string) => boolean;
  /** Returns the named fields of a matching message; null for a message without a match. */
  readonly fieldsOf: (message: string) => ReadonlyMap<string, string> | null;
}

/**
 * Parses `[ip, user, ..., status = 4*, bytes > 1000]`, a pattern for messages of fields that are separated by spaces. A
 * "quoted text" or a [bracketed text] in a message is one field. A message must have as many fields as the pattern,
 * except that `...` matches any number of fields.
 */
export function parseFieldsPattern(text: PatternText): FieldsPattern {
  text.expect("[");
  const fields: FieldPattern[] = [];
  do fields.push(text.consume("...") ? "rest" : fieldPattern(text));
  while (text.consume(","));
  text.expect("]");
  if (!text.isAtEnd) throw invalidPattern(`nothing may follow the closing bracket, ${text.positionText()}`);
  const restAt = fields.indexOf("rest");
  if (restAt !== fields.lastIndexOf("rest")) throw invalidPattern("... may occur only once");
  const known = fields.filter((field) => field !== "rest");
  const placed = (message: string): readonly (readonly [NamedField, string])[] | null => {
    const found = fieldsIn(message);
    if (restAt === -1 ? found.length !== known.length : found.length < known.length) return null;
    const skipped = found.length - known.length;
    const fields = known.map((field, index) => {
      const at = restAt === -1 || index < restAt ? index : index + skipped;
      return [field, found[at] ?? ""] as const;
    });
    return fields.every(([field, value]) => field.matches(value)) ? fields : null;
  };
  return {
    matches: (message) => placed(message) !== null,
    fieldsOf(message) {
      const fields = placed(message);
      return fields === null ? null : new Map(fields.map(([{ name }, value]) => [name, value]));
    },
  };
}

/** Parses conditions on one field: its name, then comparisons joined by && and ||. */
function fieldPattern(text: PatternText): NamedField {
  const ors: NamedField[][] = [[]];
  for (;;) {
    ors.at(-1)?.push(fieldCondition(text));
    if (text.consume("||")) ors.push([]);
    else if (!text.consume("&&")) break;
  }
  const matches = (field: string) => ors.some((ands) => ands.every((condition) => condition.matches(field)));
  return { name: ors[0]?.[0]?.name ?? "", matches };
}

function fieldCondition(text: PatternText): NamedField {
  text.skipSpace();
  const name = text.match(/[\w$.-]+|\*/)?.[0];
  if (name === undefined) throw invalidPattern(`expected the name of a field ${text.positionText()}`);
  const comparison = readPatternComparison(text);
  if (comparison === null) return { name, matches: () => true };
  const value = readPatternValue(text, comparison);
  return {
    name,
    matches: (field) => matchesComparison(value.kind === "number" ? numberOf(field) : field, comparison, value),
  };
}

function numberOf(field: string): number | string {
  const value = Number(field);
  return field.trim() === "" || !Number.isFinite(value) ? field : value;
}

/**
 * Splits a message into fields. A quotation mark or bracket without its closing character is an ordinary character. A
 * closing character that was not found is not searched for again, so the time is linear in the message.
 */
function fieldsIn(message: string): readonly string[] {
  const found: string[] = [];
  const unclosed = new Set<string>();
  const space = /\s/;
  for (let at = 0; at < message.length;) {
    const first = message.charAt(at);
    if (space.test(first)) {
      at++;
      continue;
    }
    const closing = first === '"' ? '"' : first === "[" ? "]" : "";
    const end = closing === "" || unclosed.has(closing) ? -1 : message.indexOf(closing, at + 1);
    if (end !== -1) {
      found.push(message.slice(at + 1, end));
      at = end + 1;
      continue;
    }
    if (closing !== "") unclosed.add(closing);
    const from = at;
    while (at < message.length && !space.test(message.charAt(at))) at++;
    found.push(message.slice(from, at));
  }
  return found;
}
