import { codeUnits, everyCodeUnit, complementOf, type CodeRange, type CodeUnits } from "./code-units.ts";
import { compileSearch, automatonStepsMax, type PatternAlternative, type PatternStep } from "./pattern-automaton.ts";
import { invalidPattern } from "./pattern-text.ts";

/**
 * Parses the regular expressions of CloudWatch Logs' filter patterns: characters, classes, `.`, `^`, `$`, `|` and the
 * repetitions `? * + {n,m}`, without groups. They run as automata, in time proportional to the message. JavaScript's
 * RegExp backtracks and may take practically for ever.
 */
export function parsePatternRegex(source: string): (message: string) => boolean {
  const alternatives = splitAlternatives(source).map(parseAlternative);
  if (alternatives.reduce((sum, { steps }) => sum + steps.length, 0) > automatonStepsMax) {
    throw invalidPattern(`a regular expression may have ${automatonStepsMax} characters, repetitions written out`);
  }
  return compileSearch(alternatives);
}

function splitAlternatives(source: string): readonly string[] {
  const parts = source.match(/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^|\\[])+|\|/gs) ?? [];
  if (parts.join("") !== source) throw invalidPattern(`the regular expression ${source} is not complete`);
  const found: string[] = [""];
  for (const segment of parts) {
    if (segment === "|") found.push("");
    else found[found.length - 1] += segment;
  }
  return found;
}

function parseAlternative(source: string): PatternAlternative {
  const fromStart = source.startsWith("^");
  const toEnd = /(?:^|[^\\])(?:\\\\)*\$$/.test(source);
  const inner = source.slice(fromStart ? 1 : 0, toEnd ? -1 : undefined);
  const steps: PatternStep[] = [];
  const chunk = /(\\.|\[(?:\\.|[^\]\\])+\]|[^\\[\](){}*+?|])([*+?]|\{(\d{1,3})(?:(,)(\d{1,3})?)?\})?/gsy;
  let at = 0;
  while (at < inner.length) {
    chunk.lastIndex = at;
    const match = chunk.exec(inner);
    if (match === null)
      throw invalidPattern(`the regular expression ${source} has an unsupported character at ${at + 1}`);
    at = chunk.lastIndex;
    const takes = parseAtom(match[1] as string);
    const { least, most } = repetition(match);
    if (most !== null && most < least)
      throw invalidPattern(`the maximum of the repetition ${match[2]} is less than its minimum`);
    const count = Math.max(1, most ?? least);
    if (steps.length + count > automatonStepsMax) throw invalidPattern(`the repetition ${match[2]} is too long`);
    if (most === 0) continue;
    for (let index = 0; index < count; index++) {
      steps.push({ takes, isOptional: index >= least, repeats: most === null && index === count - 1 });
    }
  }
  return { steps, fromStart, toEnd };
}

/** Returns the minimum and maximum count of a repetition; `most` is null if unlimited. */
function repetition([, , sign, from, comma, to]: RegExpExecArray): {
  readonly least: number;
  readonly most: number | null;
} {
  if (sign === undefined) return { least: 1, most: 1 };
  if (sign === "?") return { least: 0, most: 1 };
  if (sign === "*") return { least: 0, most: null };
  if (sign === "+") return { least: 1, most: null };
  const least = Number(from);
  return { least, most: comma === undefined ? least : to === undefined ? null : Number(to) };
}

const classes: Readonly<Record<string, string>> = { d: "0-9", w: "A-Za-z0-9_", s: " \\t\\r\\n\\f" };
const named: Readonly<Record<string, string>> = { t: "\t", r: "\r", n: "\n", f: "\f" };

function parseAtom(source: string): CodeUnits {
  if (source === ".") return everyCodeUnit;
  if (source.startsWith("[")) return parseClass(source.slice(1, -1));
  if (!source.startsWith("\\")) return only(source);
  const escaped = source.slice(1);
  const members = classes[escaped.toLowerCase()];
  if (members === undefined) return only(named[escaped] ?? escaped);
  return escaped === escaped.toLowerCase() ? parseClass(members) : parseClass(`^${members}`);
}

function only(character: string): CodeUnits {
  const code = character.charCodeAt(0);
  return [{ first: code, last: code }];
}

function parseClass(source: string): CodeUnits {
  const isNegated = source.startsWith("^");
  const inner = isNegated ? source.slice(1) : source;
  const ranges: CodeRange[] = [];
  for (const [, from = "", to] of inner.matchAll(/(\\.|[^\\])(?:-(\\.|[^\\]))?/gs)) {
    if (from.startsWith("\\") && classes[from.slice(1).toLowerCase()] !== undefined) ranges.push(...parseAtom(from));
    else {
      const first = codeOf(from);
      const last = to === undefined ? first : codeOf(to);
      if (last < first) throw invalidPattern(`the end of the range ${from}-${to} is less than its start`);
      ranges.push({ first, last });
    }
  }
  if (ranges.length === 0) throw invalidPattern("a class of characters is empty");
  return isNegated ? complementOf(codeUnits(ranges)) : codeUnits(ranges);
}

function codeOf(member: string): number {
  const character = member.startsWith("\\") ? member.slice(1) : member;
  return (member.startsWith("\\") ? (named[character] ?? character) : character).charCodeAt(0);
}
