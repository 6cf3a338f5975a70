import type { MetricName } from "@galatea/base/metrics";
import { mathError } from "./metric-math.ts";

export type MetricPredicate = (metric: MetricName) => boolean;

type SearchToken =
  | { readonly kind: "sign"; readonly text: "(" | ")" | "AND" | "OR" | "NOT" }
  /** If `name` is null, the term may match the metric's name, its namespace or any of its dimensions. */
  | { readonly kind: "term"; readonly name: string | null; readonly text: string; readonly isExact: boolean };

const depthMax = 32;
const lengthMax = 1024;

/**
 * Parses the first parameter of SEARCH: `{Namespace,Dimension,...}` for metrics with exactly these dimensions, then
 * terms, which must all match unless OR and NOT are used. `Name="value"` matches a metric's whole name, namespace or
 * dimension; `Name=word` and bare words match words in them, in any case.
 */
export function parseMetricSearch(text: string): MetricPredicate {
  if (text.length > lengthMax) throw mathError(`a search can have at most ${lengthMax} characters`);
  const schema = /^\s*\{([^}]*)\}/.exec(text);
  const terms = new SearchTerms(tokensOf(schema === null ? text : text.slice(schema[0].length)));
  const matches = terms.all();
  if (schema === null) return matches;
  const [namespace = "", ...names] = (schema[1] ?? "").split(",").map((segment) => segment.trim().replaceAll('"', ""));
  const desired = new Set(names);
  return (metric) =>
    metric.namespace === namespace &&
    metric.dimensions.length === desired.size &&
    metric.dimensions.every(({ name }) => desired.has(name)) &&
    matches(metric);
}

function tokensOf(text: string): readonly SearchToken[] {
  const pattern = /\s*(?:([()])|(?:("(?:[^"\\]|\\.)*"|[^\s()="]+)\s*=\s*)?("(?:[^"\\]|\\.)*"|[^\s()="]+))/y;
  const found: SearchToken[] = [];
  const trimmed = text.trimEnd();
  while (pattern.lastIndex < trimmed.length) {
    const at = pattern.lastIndex;
    const match = pattern.exec(trimmed);
    if (match === null) throw mathError(`a search has an invalid term: ${trimmed.slice(at, at + 12)}`);
    const [, sign, name, value = ""] = match;
    if (sign !== undefined) found.push({ kind: "sign", text: sign as "(" | ")" });
    else if (name === undefined && /^(?:AND|OR|NOT)$/.test(value)) {
      found.push({ kind: "sign", text: value as "AND" | "OR" | "NOT" });
    } else {
      const isExact = value.startsWith('"');
      found.push({ kind: "term", name: name === undefined ? null : unquoted(name), text: unquoted(value), isExact });
    }
  }
  return found;
}

const unquoted = (text: string): string =>
  text.startsWith('"') ? text.slice(1, -1).replaceAll(/\\(.)/gs, "$1") : text;

/** A parser of the terms of a search. AND binds more tightly than OR. */
class SearchTerms {
  readonly #tokens: readonly SearchToken[];
  #at = 0;

  constructor(tokens: readonly SearchToken[]) {
    this.#tokens = tokens;
  }

  /** Returns the match of all terms; an empty search matches every metric. */
  all(): MetricPredicate {
    if (this.#tokens.length === 0) return () => true;
    const matches = this.#anyOf(0);
    if (this.#at < this.#tokens.length) throw mathError("a search has an unmatched )");
    return matches;
  }

  #anyOf(depth: number): MetricPredicate {
    if (depth > depthMax) throw mathError("a search is nested too deeply");
    const matches = [this.#allOf(depth)];
    while (this.#takes("OR")) matches.push(this.#allOf(depth));
    return (metric) => matches.some((each) => each(metric));
  }

  #allOf(depth: number): MetricPredicate {
    const matches = [this.#one(depth)];
    for (;;) {
      const isAnd = this.#takes("AND");
      const next = this.#tokens[this.#at];
      const isOver = next === undefined || (next.kind === "sign" && (next.text === ")" || next.text === "OR"));
      if (isOver && !isAnd) return (metric) => matches.every((each) => each(metric));
      matches.push(this.#one(depth));
    }
  }

  #one(depth: number): MetricPredicate {
    if (depth > depthMax) throw mathError("a search is nested too deeply");
    if (this.#takes("NOT")) {
      const matches = this.#one(depth + 1);
      return (metric) => !matches(metric);
    }
    if (this.#takes("(")) {
      const matches = this.#anyOf(depth + 1);
      if (!this.#takes(")")) throw mathError("a search has an unmatched (");
      return matches;
    }
    const token = this.#tokens[this.#at];
    if (token?.kind !== "term")
      throw mathError(`a search has no term ${token === undefined ? "at its end" : `before ${token.text}`}`);
    this.#at += 1;
    return termMatch(token);
  }

  #takes(text: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.kind !== "sign" || token.text !== text) return false;
    this.#at += 1;
    return true;
  }
}

function termMatch({ name, text, isExact }: Extract<SearchToken, { readonly kind: "term" }>): MetricPredicate {
  const words = wordsOf(text);
  const isIn = (value: string) => (isExact ? value === text : holds(wordsOf(value), words));
  if (name === null)
    return (metric) => partsOf(metric).some((segment) => (isExact ? holds(wordsOf(segment), words) : isIn(segment)));
  return ({ namespace, metricName, dimensions }) => {
    if (name === "MetricName") return isIn(metricName);
    if (name === "Namespace") return isIn(namespace);
    return dimensions.some((dimension) => dimension.name === name && isIn(dimension.value));
  };
}

const partsOf = ({ namespace, metricName, dimensions }: MetricName) => [
  namespace,
  metricName,
  ...dimensions.flatMap(({ name, value }) => [name, value]),
];

/**
 * Splits a text at changes between letters and digits and before capitals, in lower case: `InvocationsPerInstance` is
 * three words.
 */
function wordsOf(text: string): readonly string[] {
  return (text.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\p{ASCII}]+/gu) ?? []).map((word) => word.toLowerCase());
}

/** Returns whether `words` contains all words of `desired`, adjacent and in order. */
function holds(words: readonly string[], desired: readonly string[]): boolean {
  if (desired.length === 0) return false;
  for (let at = 0; at + desired.length <= words.length; at++) {
    if (desired.every((word, index) => words[at + index] === word)) return true;
  }
  return false;
}
