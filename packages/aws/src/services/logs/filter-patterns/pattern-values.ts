import { unreachable } from "@galatea/base";
import { parsePatternRegex } from "./pattern-regex.ts";
import { invalidPattern, type PatternText } from "./pattern-text.ts";

export type PatternComparison = "=" | "!=" | "<" | "<=" | ">" | ">=";

/** The value with which a pattern compares a JSON property or a field of a line. */
export type PatternValue =
  | { readonly kind: "number"; readonly value: number; readonly text: string }
  /** A text in which each `*` matches any characters. */
  | { readonly kind: "text"; readonly isLike: (text: string) => boolean }
  | { readonly kind: "regex"; readonly isLike: (text: string) => boolean };

export function readPatternComparison(text: PatternText): PatternComparison | null {
  text.skipSpace();
  return (text.match(/!=|<=|>=|=|<|>/)?.[0] ?? null) as PatternComparison | null;
}

/** Reads a quoted text, a `%regular expression%`, or a bare word up to a terminating sign. */
export function readPatternValue(text: PatternText, comparison: PatternComparison): PatternValue {
  const value = takeAnyValue(text);
  if (value.kind !== "number" && comparison !== "=" && comparison !== "!=") {
    throw invalidPattern(`${comparison} compares numbers only, ${text.positionText()}`);
  }
  return value;
}

function takeAnyValue(text: PatternText): PatternValue {
  text.skipSpace();
  const quoted = text.match(/"((?:[^"\\]|\\.)*)"/s);
  if (quoted !== null) return { kind: "text", isLike: compileWildcards((quoted[1] ?? "").replaceAll(/\\(.)/gs, "$1")) };
  const regex = text.match(/%((?:[^%\\]|\\.)+)%/s);
  if (regex !== null) {
    text.countCostlyElement("regular expressions");
    return { kind: "regex", isLike: parsePatternRegex(regex[1] ?? "") };
  }
  const word = text.match(/[^\s"%,&|(){}[\]=<>!]+/)?.[0];
  if (word === undefined) throw invalidPattern(`expected a value ${text.positionText()}`);
  if (/^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/.test(word))
    return { kind: "number", value: Number(word), text: word };
  return { kind: "text", isLike: compileWildcards(word) };
}

/**
 * Returns a function that matches a text with a pattern in which each `*` stands for any characters. It searches the
 * literals one after the other, so the time is linear in the text.
 */
export function compileWildcards(pattern: string): (text: string) => boolean {
  const segments = pattern.split("*");
  const [first = "", ...rest] = segments;
  const last = rest.pop();
  if (last === undefined) return (text) => text === first;
  return (text) => {
    if (!text.startsWith(first)) return false;
    let at = first.length;
    for (const segment of rest) {
      const found = text.indexOf(segment, at);
      if (found === -1) return false;
      at = found + segment.length;
    }
    return text.length - last.length >= at && text.endsWith(last);
  };
}

/**
 * Returns whether a value satisfies a pattern's comparison. A value that is neither a text nor a number satisfies no
 * comparison, not even `!=`. A text is never less or greater than a number.
 */
export function matchesComparison(found: unknown, comparison: PatternComparison, value: PatternValue): boolean {
  switch (value.kind) {
    case "number": {
      if (typeof found === "number") return comparesNumbers(found, comparison, value.value);
      return typeof found === "string" && comparesTexts(found, comparison, value.text);
    }
    case "text":
    case "regex": {
      if (typeof found !== "string" && typeof found !== "number") return false;
      return value.isLike(String(found)) === (comparison === "=");
    }
    default:
      return unreachable(value);
  }
}

function comparesTexts(found: string, comparison: PatternComparison, text: string): boolean {
  return comparison === "=" ? found === text : comparison === "!=" && found !== text;
}

function comparesNumbers(found: number, comparison: PatternComparison, value: number): boolean {
  switch (comparison) {
    case "=":
      return found === value;
    case "!=":
      return found !== value;
    case "<":
      return found < value;
    case "<=":
      return found <= value;
    case ">":
      return found > value;
    case ">=":
      return found >= value;
    default:
      return unreachable(comparison);
  }
}
