import { PatternText, invalidPattern } from "./pattern-text.ts";
import { matchesComparison, readPatternComparison, readPatternValue } from "./pattern-values.ts";

/** A key, an index of a list, or (null) every member. */
type Step = string | number | null;
type Condition = (root: unknown) => boolean;

export interface JsonPattern {
  readonly matches: (message: string) => boolean;
  /** The selectors in the pattern, as written. */
  readonly selectors: readonly string[];
}

/** Parses `{ $.selector = value && ... || ... }`, which matches only messages that are JSON objects. */
export function parseJsonPattern(text: PatternText): JsonPattern {
  text.expect("{");
  const selectors: string[] = [];
  const condition = anyOf(text, selectors);
  text.expect("}");
  if (!text.isAtEnd) throw invalidPattern(`nothing may follow the closing brace, ${text.positionText()}`);
  const matches = (message: string) => {
    const root = documentOf(message);
    return root !== undefined && condition(root);
  };
  return { matches, selectors };
}

/**
 * Returns a function that finds the first value that a selector matches in a JSON message; undefined if there is none.
 */
export function parseJsonSelector(source: string): (message: string) => unknown {
  const text = new PatternText(source);
  const path = selector(text);
  if (!text.isAtEnd) throw invalidPattern(`nothing may follow a selector, ${text.positionText()}`);
  return (message) => {
    const root = documentOf(message);
    return root === undefined ? undefined : valuesAt(root, path)[0];
  };
}

/** Parses a message; undefined if it is not a JSON object. */
function documentOf(message: string): unknown {
  if (!/^\s*\{/.test(message)) return undefined;
  try {
    return JSON.parse(message);
  } catch {
    return undefined;
  }
}

function anyOf(text: PatternText, selectors: string[]): Condition {
  const conditions = [allOf(text, selectors)];
  while (text.consume("||")) conditions.push(allOf(text, selectors));
  return (root) => conditions.some((condition) => condition(root));
}

function allOf(text: PatternText, selectors: string[]): Condition {
  const conditions = [one(text, selectors)];
  while (text.consume("&&")) conditions.push(one(text, selectors));
  return (root) => conditions.every((condition) => condition(root));
}

function one(text: PatternText, selectors: string[]): Condition {
  if (text.consume("(")) {
    const condition = anyOf(text, selectors);
    text.expect(")");
    return condition;
  }
  text.skipSpace();
  const from = text.at;
  const path = selector(text);
  selectors.push(text.text.slice(from, text.at));
  text.skipSpace();
  const state = text.match(/(IS\s+NOT\s+NULL|IS\s+NULL|IS\s+TRUE|IS\s+FALSE|NOT\s+EXISTS|EXISTS)\b/i)?.[1];
  if (state !== undefined) return isInState(path, state.toUpperCase().replaceAll(/\s+/g, " "));
  const comparison = readPatternComparison(text);
  if (comparison === null) throw invalidPattern(`expected a comparison, IS or NOT EXISTS ${text.positionText()}`);
  const value = readPatternValue(text, comparison);
  return (root) => valuesAt(root, path).some((found) => matchesComparison(found, comparison, value));
}

function isInState(path: readonly Step[], state: string): Condition {
  const some =
    (is: (found: unknown) => boolean): Condition =>
    (root) =>
      valuesAt(root, path).some(is);
  switch (state) {
    case "IS NULL":
      return some((found) => found === null);
    case "IS NOT NULL":
      return some((found) => found !== null);
    case "IS TRUE":
      return some((found) => found === true);
    case "IS FALSE":
      return some((found) => found === false);
    case "EXISTS":
      return some(() => true);
    default:
      return (root) => valuesAt(root, path).length === 0;
  }
}

/** Parses a selector such as `$.a.b[0]`, `$.a[*].b` or `$["a.b"]`. */
function selector(text: PatternText): readonly Step[] {
  text.expect("$");
  const steps: Step[] = [];
  for (;;) {
    const key = text.match(/\.([\w-]+|\*)/)?.[1];
    if (key !== undefined) {
      steps.push(key === "*" ? null : key);
      continue;
    }
    const location = text.match(/\.?\[\s*(?:(\d{1,9})|(\*)|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*\]/s);
    if (location === null) break;
    const name = location[3] ?? location[4];
    steps.push(
      location[1] !== undefined
        ? Number(location[1])
        : location[2] !== undefined
          ? null
          : (name ?? "").replaceAll(/\\(.)/gs, "$1"),
    );
  }
  if (steps.length === 0) throw invalidPattern(`expected a property after $ ${text.positionText()}`);
  const wildcardCount = steps.filter((step) => step === null).length;
  if (wildcardCount > 1) throw invalidPattern(`a selector may have one wildcard, ${text.positionText()}`);
  if (wildcardCount > 0) text.countCostlyElement("wildcards");
  return steps;
}

/** Returns the values at a path. Each step of the path visits each member of the message at most once. */
function valuesAt(root: unknown, path: readonly Step[]): readonly unknown[] {
  let found: readonly unknown[] = [root];
  for (const step of path) found = found.flatMap((value) => membersAt(value, step));
  return found;
}

function membersAt(value: unknown, step: Step): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [];
  if (step === null) return Object.values(value);
  if (typeof step === "number") return Array.isArray(value) && step < value.length ? [value[step]] : [];
  return !Array.isArray(value) && Object.hasOwn(value, step) ? [(value as Record<string, unknown>)[step]] : [];
}
