import { invalidPattern } from "./pattern-text.ts";

/** Of one expression, its repetitions written out: what a search may take is this many steps for each character of a message. */
const stepsMax = 64;

type Atom = (character: number) => boolean;

/** One character with what may follow it: a node of the automaton. Without an atom it only says where an alternative ends. */
interface State {
  readonly atom: Atom;
  /** May be passed over without a character. */
  readonly isOptional: boolean;
  /** May come again. */
  readonly repeats: boolean;
}

interface Alternative {
  readonly states: readonly State[];
  readonly fromStart: boolean;
  readonly toEnd: boolean;
}

/**
 * The regular expressions of CloudWatch Logs' filter patterns: characters, classes, `.`, `^`, `$`, `|` and the repetitions `? * + {n,m}`,
 * without groups. They are run as automata, in time proportional to the message, because JavaScript's own would take for ever for some.
 */
export function parsePatternRegex(source: string): (message: string) => boolean {
  const alternatives = splitAlternatives(source).map(parseAlternative);
  if (alternatives.reduce((sum, { states }) => sum + states.length, 0) > stepsMax) {
    throw invalidPattern(`a regular expression may have ${stepsMax} characters, repetitions written out`);
  }
  return (message) => alternatives.some((alternative) => occurs(alternative, message));
}

function splitAlternatives(source: string): readonly string[] {
  const parts = source.match(/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^|\\[])+|\|/gs) ?? [];
  if (parts.join("") !== source) throw invalidPattern(`the regular expression ${source} is not complete`);
  const found: string[] = [""];
  for (const part of parts) {
    if (part === "|") found.push("");
    else found[found.length - 1] += part;
  }
  return found;
}

function parseAlternative(source: string): Alternative {
  const fromStart = source.startsWith("^");
  const toEnd = /(?:^|[^\\])(?:\\\\)*\$$/.test(source);
  const inner = source.slice(fromStart ? 1 : 0, toEnd ? -1 : undefined);
  const states: State[] = [];
  const piece = /(\\.|\[(?:\\.|[^\]\\])+\]|[^\\[\](){}*+?|])([*+?]|\{(\d{1,3})(?:(,)(\d{1,3})?)?\})?/gsy;
  let at = 0;
  while (at < inner.length) {
    piece.lastIndex = at;
    const match = piece.exec(inner);
    if (match === null) throw invalidPattern(`the regular expression ${source} has what is not supported at ${at + 1}`);
    at = piece.lastIndex;
    const atom = parseAtom(match[1] as string);
    const { least, most } = repetition(match);
    if (most !== null && most < least) throw invalidPattern(`the repetition ${match[2]} ends before it begins`);
    const count = Math.max(1, most ?? least);
    if (states.length + count > stepsMax) throw invalidPattern(`the repetition ${match[2]} is too long`);
    if (most === 0) continue;
    for (let index = 0; index < count; index++) {
      states.push({ atom, isOptional: index >= least, repeats: most === null && index === count - 1 });
    }
  }
  return { states, fromStart, toEnd };
}

/** How often at least and at most; null: without end. */
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

function parseAtom(source: string): Atom {
  if (source === ".") return () => true;
  if (source.startsWith("[")) return parseClass(source.slice(1, -1));
  if (!source.startsWith("\\")) return is(source);
  const escaped = source.slice(1);
  const members = classes[escaped.toLowerCase()];
  if (members === undefined) return is(named[escaped] ?? escaped);
  return escaped === escaped.toLowerCase() ? parseClass(members) : parseClass(`^${members}`);
}

function is(character: string): Atom {
  const code = character.charCodeAt(0);
  return (found) => found === code;
}

function parseClass(source: string): Atom {
  const has = parseMembers(source);
  // Most characters are looked up.
  const ofAscii = Uint8Array.from({ length: 128 }, (_, code) => (has(code) ? 1 : 0));
  return (code) => (code < 128 ? ofAscii[code] === 1 : has(code));
}

function parseMembers(source: string): Atom {
  const isNegated = source.startsWith("^");
  const inner = isNegated ? source.slice(1) : source;
  const ranges: { readonly from: number; readonly to: number }[] = [];
  const nested: Atom[] = [];
  for (const [, from = "", to] of inner.matchAll(/(\\.|[^\\])(?:-(\\.|[^\\]))?/gs)) {
    if (from.startsWith("\\") && classes[from.slice(1).toLowerCase()] !== undefined) nested.push(parseAtom(from));
    else {
      const first = codeOf(from);
      const last = to === undefined ? first : codeOf(to);
      if (last < first) throw invalidPattern(`the range ${from}-${to} ends before it begins`);
      ranges.push({ from: first, to: last });
    }
  }
  if (ranges.length + nested.length === 0) throw invalidPattern("a class of characters is empty");
  const has: Atom = (code) =>
    ranges.some(({ from, to }) => code >= from && code <= to) || nested.some((atom) => atom(code));
  return isNegated ? (code) => !has(code) : has;
}

function codeOf(member: string): number {
  const character = member.startsWith("\\") ? member.slice(1) : member;
  return (member.startsWith("\\") ? (named[character] ?? character) : character).charCodeAt(0);
}

/** Whether the expression is found in the message. `at[n]`: the first n states have been passed. */
function occurs({ states, fromStart, toEnd }: Alternative, message: string): boolean {
  let at = new Uint8Array(states.length + 1);
  let next = new Uint8Array(states.length + 1);
  at[0] = 1;
  pass(states, at);
  for (let index = 0; ; index++) {
    const isOver = index === message.length;
    if (at[states.length] === 1 && (isOver || !toEnd)) return true;
    if (isOver) return false;
    next.fill(0);
    if (!fromStart) next[0] = 1;
    step(states, at, message.charCodeAt(index), next);
    pass(states, next);
    [at, next] = [next, at];
  }
}

function step(states: readonly State[], at: Uint8Array, code: number, next: Uint8Array): void {
  // By index: with an iterator over the states a search takes nearly twice as long.
  for (let passed = 0; passed < states.length; passed++) {
    const isHere = at[passed] === 1;
    if (!isHere && at[passed + 1] !== 1) continue;
    const state = states[passed] as State;
    if ((isHere || state.repeats) && next[passed + 1] !== 1 && state.atom(code)) next[passed + 1] = 1;
  }
}

function pass(states: readonly State[], at: Uint8Array): void {
  for (let passed = 0; passed < states.length; passed++) {
    if (at[passed] === 1 && states[passed]?.isOptional === true) at[passed + 1] = 1;
  }
}
