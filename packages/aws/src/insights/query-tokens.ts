import { QueryError } from "./query.ts";

export type QueryToken = { readonly start: number; readonly end: number } & (
  | { readonly kind: "name"; readonly text: string; readonly isQuoted: boolean }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "duration"; readonly ms: number }
  | { readonly kind: "expression"; readonly text: string }
  | { readonly kind: "sign"; readonly text: string }
  | { readonly kind: "end" }
);

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  msec: 1,
  s: 1000,
  sec: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  hr: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
  w: 604_800_000,
};

const space = /(?:\s+|#[^\n]*)+/y;
const duration = /(\d{1,9})\s?(msec|ms|sec|s|min|m|hr|h|day|d|w)s?(?![\w.])/y;
const number = /\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w@])/y;
const name = /@?[A-Za-z_][\w]*(?:\.[\w]+|\[\d+\])*/y;
const backticked = /`([^`]+)`/y;
const quoted = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/sy;
const expression = /\/((?:[^/\\]|\\.)+)\//sy;
const sign = /=~|!=|<=|>=|[=<>|,()[\]*+\-/%^]/y;

/**
 * Splits a query into tokens. A slash begins a regular expression where a value is expected, and is the division sign
 * elsewhere. The previous token decides.
 */
export function tokenizeQuery(query: string): readonly QueryToken[] {
  const words: QueryToken[] = [];
  for (let at = 0; ;) {
    at = spaceEnd(query, at);
    if (at >= query.length) return [...words, { kind: "end", start: query.length, end: query.length }];
    const word = wordAt(query, at, words);
    if (word === null) throw new QueryError(`unexpected symbol ${query.charAt(at)}`, at, at + 1);
    words.push(word);
    at = word.end;
  }
}

function spaceEnd(query: string, at: number): number {
  space.lastIndex = at;
  return space.test(query) ? space.lastIndex : at;
}

function wordAt(query: string, start: number, before: readonly QueryToken[]): QueryToken | null {
  const find = (sticky: RegExp): RegExpExecArray | null => {
    sticky.lastIndex = start;
    return sticky.exec(query);
  };
  const place = (found: RegExpExecArray) => ({ start, end: start + found[0].length });
  let found = find(duration);
  if (found !== null)
    return { kind: "duration", ms: Number(found[1]) * (unitMs[found[2] ?? ""] ?? 0), ...place(found) };
  found = find(number);
  if (found !== null) return { kind: "number", value: Number(found[0]), ...place(found) };
  found = find(name);
  if (found !== null)
    return { kind: "name", text: found[0].replaceAll(/\[(\d+)\]/g, ".$1"), isQuoted: false, ...place(found) };
  found = find(backticked);
  if (found !== null) return { kind: "name", text: found[1] ?? "", isQuoted: true, ...place(found) };
  found = find(quoted);
  if (found !== null) return { kind: "text", text: unescaped(found[1] ?? found[2] ?? ""), ...place(found) };
  found = isDivision(before) ? null : find(expression);
  if (found !== null) return { kind: "expression", text: (found[1] ?? "").replaceAll("\\/", "/"), ...place(found) };
  found = find(sign);
  return found === null ? null : { kind: "sign", text: found[0], ...place(found) };
}

/**
 * Returns whether a slash after these tokens is the division sign. After `like`, and after the field of `parse`, a slash begins a regular
 * expression.
 */
function isDivision(before: readonly QueryToken[]): boolean {
  const [above, last] = [before.at(-2), before.at(-1)];
  if (last === undefined) return false;
  if (last.kind === "number") return true;
  if (last.kind === "name") return !isKeyword(last, "like") && !(above !== undefined && isKeyword(above, "parse"));
  return last.kind === "sign" && last.text === ")";
}

/** Returns whether a token is a keyword; keywords are not case sensitive. */
export function isKeyword(word: QueryToken, text: string): boolean {
  return word.kind === "name" && !word.isQuoted && word.text.toLowerCase() === text;
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/gs, (_, character: string) =>
    character === "n" ? "\n" : character === "t" ? "\t" : character === "r" ? "\r" : character,
  );
}
