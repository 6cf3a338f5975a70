import { RE2JS, RE2JSException } from "re2js";

/** The reason why a regular expression cannot be compiled. */
export class ExpressionError extends Error {}

/** A search may take this many steps for each character, and compiling memory and time for each of them. */
const stepsMax = 2000;

/**
 * A regular expression in the syntax of RE2, with JavaScript's `\u0000` beside it. Searches take time in proportion to the text's length
 * and the expression's: log lines come from anybody, and expressions from every caller that may query.
 */
export class SearchExpression {
  /** The names of the groups, from the first on; null for a group without a name. */
  readonly names: readonly (string | null)[];
  readonly #compiled: RE2JS;

  /** Throws ExpressionError. */
  constructor(source: string) {
    if (stepsOf(source) > stepsMax)
      throw new ExpressionError("the expression is too long, its repetitions written out");
    this.#compiled = compile(source);
    const names: (string | null)[] = Array.from({ length: this.#compiled.groupCount() }, () => null);
    for (const [name, index] of Object.entries(this.#compiled.namedGroups())) names[index - 1] = name;
    this.names = names;
  }

  isIn(text: string): boolean {
    return this.#compiled.test(text);
  }

  /** The first place where it is found: the whole, then the groups; null for a group that took part in nothing. */
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
    if (error instanceof RE2JSException) throw new ExpressionError(error.message);
    throw error;
  }
}

/** Escapes, classes, repetitions and single characters. */
const tokens = /\\(?:x\{[^}]*\}|[pPu]\{[^}]*\}|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|./gs;

/** At least as many steps as the compiled expression has: compiling one of ten million characters takes seconds. Throws ExpressionError. */
function stepsOf(source: string): number {
  // What stands between them would have to be read as no syntax.
  if (source.includes("\\Q")) throw new ExpressionError("\\Q is not supported");
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
