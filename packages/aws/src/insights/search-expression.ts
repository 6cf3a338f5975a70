import { RE2JS, RE2JSException } from "re2js";

/** The reason why a regular expression cannot be compiled. */
export class RegexError extends Error {}

/**
 * Maximum number of steps of a compiled expression. It bounds the search time per character, and the memory and time of
 * compiling.
 */
const stepsMax = 2000;

/**
 * A regular expression in the syntax of RE2, plus JavaScript's `\u0000`. A search takes time proportional to the lengths of the text and
 * the expression. Without this guarantee, a caller's expression could block a thread for ever on some log lines.
 */
export class LinearTimeRegex {
  /** The names of the groups, in order; null for an unnamed one. */
  readonly names: readonly (string | null)[];
  readonly #compiled: RE2JS;

  /** Throws RegexError. */
  constructor(source: string) {
    if (stepsOf(source) > stepsMax)
      throw new RegexError("the regular expression is too long when its repetitions are expanded");
    this.#compiled = compile(source);
    const names: (string | null)[] = Array.from({ length: this.#compiled.groupCount() }, () => null);
    for (const [name, index] of Object.entries(this.#compiled.namedGroups())) names[index - 1] = name;
    this.names = names;
  }

  matches(text: string): boolean {
    return this.#compiled.test(text);
  }

  /** Finds the first match. Returns the whole match, then the groups; a group without a match is null. */
  find(text: string): readonly (string | null)[] | null {
    const matcher = this.#compiled.matcher(text);
    if (!matcher.find()) return null;
    return Array.from({ length: this.names.length + 1 }, (_, index) => matcher.group(index));
  }
}

function compile(source: string): RE2JS {
  try {
    return RE2JS.compile(RE2JS.translateRegExp(source));
  } catch (error) {
    if (error instanceof RE2JSException) throw new RegexError(error.message);
    throw error;
  }
}

/** Escapes, classes, repetitions and single characters. */
const tokens = /\\(?:x\{[^}]*\}|[pPu]\{[^}]*\}|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|./gs;

/**
 * Returns an upper bound of the number of steps of the compiled expression. The expression is not compiled for this,
 * because ten million characters would take seconds. Throws RegexError.
 */
function stepsOf(source: string): number {
  // Not supported, because the literal text after `\Q` would have to be counted differently.
  if (source.includes("\\Q")) throw new RegexError("\\Q is not supported");
  const open = [0];
  const add = (count: number) => open.push((open.pop() ?? 0) + count);
  let last = 0;
  for (const [token, least, most] of source.matchAll(tokens)) {
    if (least !== undefined) add(last * Math.max(0, Number(least), Number(most ?? 0)));
    else if (token === "(") open.push(0);
    else {
      last = token === ")" && open.length > 1 ? 2 + (open.pop() ?? 0) : 1;
      add(last);
    }
  }
  return open.reduce((sum, count) => sum + count, 0);
}
