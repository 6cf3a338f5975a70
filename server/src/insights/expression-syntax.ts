/** One code unit that may stand at a place of a text. */
export type Atom = (code: number) => boolean;

/** A regular expression, read. `index` numbers the groups whose text is kept, from 1. */
export type ExpressionNode =
  | { readonly is: "atom"; readonly atom: Atom }
  | { readonly is: "sequence" | "choice"; readonly of: readonly ExpressionNode[] }
  | {
      readonly is: "repeat";
      readonly of: ExpressionNode;
      readonly least: number;
      /** Null: without end. */
      readonly most: number | null;
      readonly isGreedy: boolean;
    }
  | { readonly is: "group"; readonly of: ExpressionNode; readonly index: number }
  | { readonly is: "place"; readonly place: Place };

/** Start and end of the text, the edge of a word, and what is none. */
export type Place = "start" | "end" | "edge" | "inside";

export interface ReadExpression {
  readonly node: ExpressionNode;
  /** Of the groups, from the first on; null for one without a name. */
  readonly names: readonly (string | null)[];
}

/** Says what of a regular expression cannot be read, or is not supported. */
export class ExpressionError extends Error {}

const depthMax = 50;
const repetitionsMax = 1000;

/**
 * Reads characters, classes, `.`, `^`, `$`, `\b`, groups with and without names, alternatives, and greedy and lazy repetitions. What an automaton
 * cannot do (references to groups, looking ahead and behind) is refused. Throws ExpressionError.
 */
export function readExpression(source: string): ReadExpression {
  const reader = new ExpressionReader(source);
  return { node: reader.all(), names: reader.names };
}

class ExpressionReader {
  readonly names: (string | null)[] = [];
  readonly #text: string;
  #at = 0;
  #ignoresCase = false;

  constructor(source: string) {
    const flags = /^\(\?([is]+)\)/.exec(source)?.[1];
    if (flags?.includes("s") === true) throw new ExpressionError("the flag s is not supported");
    this.#ignoresCase = flags !== undefined;
    this.#text = flags === undefined ? source : source.slice(flags.length + 3);
  }

  all(): ExpressionNode {
    const node = this.#choice(0);
    if (this.#at < this.#text.length) throw this.#unexpected();
    return node;
  }

  #choice(depth: number): ExpressionNode {
    if (depth > depthMax) throw new ExpressionError(`groups are ${depthMax} deep at most`);
    const of = [this.#sequence(depth)];
    while (this.#takes("|")) of.push(this.#sequence(depth));
    return of.length === 1 ? (of[0] as ExpressionNode) : { is: "choice", of };
  }

  #sequence(depth: number): ExpressionNode {
    const of: ExpressionNode[] = [];
    while (this.#at < this.#text.length && !/[|)]/.test(this.#text.charAt(this.#at))) {
      of.push(this.#repeated(this.#one(depth)));
    }
    return of.length === 1 ? (of[0] as ExpressionNode) : { is: "sequence", of };
  }

  #repeated(of: ExpressionNode): ExpressionNode {
    const found = this.#match(/([*+?])|\{(\d{1,4})(?:(,)(\d{1,4})?)?\}/y);
    if (found === null) return of;
    if (of.is === "place") throw new ExpressionError("a place cannot be repeated");
    const [, sign, from, comma, to] = found;
    const least = sign === undefined ? Number(from) : sign === "+" ? 1 : 0;
    const most =
      sign === undefined
        ? comma === undefined
          ? least
          : to === undefined
            ? null
            : Number(to)
        : sign === "?"
          ? 1
          : null;
    if (Math.max(least, most ?? 0) > repetitionsMax)
      throw new ExpressionError(`the repetition ${found[0]} is too long`);
    if (most !== null && most < least) throw new ExpressionError(`the repetition ${found[0]} ends before it begins`);
    const isGreedy = !this.#takes("?");
    if (/[*+?]/.test(this.#text.charAt(this.#at))) throw this.#unexpected();
    return { is: "repeat", of, least, most, isGreedy };
  }

  #one(depth: number): ExpressionNode {
    if (this.#takes("(")) return this.#group(depth);
    if (this.#takes("[")) return { is: "atom", atom: this.#class() };
    if (this.#takes("."))
      return { is: "atom", atom: (code) => code !== 10 && code !== 13 && code !== 0x2028 && code !== 0x2029 };
    if (this.#takes("^")) return { is: "place", place: "start" };
    if (this.#takes("$")) return { is: "place", place: "end" };
    if (this.#takes("\\b")) return { is: "place", place: "edge" };
    if (this.#takes("\\B")) return { is: "place", place: "inside" };
    if (/[*+?{]/.test(this.#text.charAt(this.#at))) throw this.#unexpected();
    return { is: "atom", atom: this.#character() };
  }

  #group(depth: number): ExpressionNode {
    const [head, name] = this.#match(/\?P?<([A-Za-z_]\w*)>|\?:/y) ?? [null];
    if (head === null && this.#text.charAt(this.#at) === "?") {
      throw new ExpressionError("groups that look ahead or behind, or have flags, are not supported");
    }
    const index = head === "?:" ? 0 : this.names.push(name ?? null);
    const of = this.#choice(depth + 1);
    if (!this.#takes(")")) throw new ExpressionError("a group is not closed");
    return index === 0 ? of : { is: "group", of, index };
  }

  #character(): Atom {
    if (!this.#takes("\\")) {
      const code = this.#text.charCodeAt(this.#at++);
      return this.#folded((found) => found === code);
    }
    const atom = this.#escaped();
    if (typeof atom === "function") return atom;
    return this.#folded((found) => found === atom);
  }

  /** A class, or the code of one character. */
  #escaped(): Atom | number {
    const hex = this.#match(/x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})/y);
    if (hex !== null) return Number.parseInt(hex[1] ?? hex[2] ?? "", 16);
    const escaped = this.#text.charAt(this.#at++);
    if (escaped === "") throw new ExpressionError("the expression ends with a backslash");
    const atoms = classes[escaped.toLowerCase()];
    if (atoms !== undefined) return escaped === escaped.toLowerCase() ? atoms : (code) => !atoms(code);
    const named = controls[escaped];
    if (named !== undefined) return named;
    if (/[A-Za-z1-9]/.test(escaped)) throw new ExpressionError(`\\${escaped} is not supported`);
    return escaped.charCodeAt(0);
  }

  #class(): Atom {
    const isNegated = this.#takes("^");
    const atoms: Atom[] = [];
    while (!this.#takes("]")) {
      if (this.#at >= this.#text.length) throw new ExpressionError("a class of characters is not closed");
      const from = this.#member();
      if (typeof from === "function") {
        atoms.push(from);
        continue;
      }
      const isRange = /^-[^\]]/s.test(this.#text.slice(this.#at, this.#at + 2));
      if (isRange) this.#at += 1;
      const to = isRange ? this.#member() : from;
      if (typeof to === "function") throw new ExpressionError("a range of characters ends with a class");
      if (to < from) throw new ExpressionError("a range of characters ends before it begins");
      atoms.push((code) => code >= from && code <= to);
    }
    const has = this.#folded((code) => atoms.some((atom) => atom(code)));
    return isNegated ? (code) => !has(code) : has;
  }

  #member(): Atom | number {
    if (!this.#takes("\\")) return this.#text.charCodeAt(this.#at++);
    if (this.#takes("b")) return 8;
    return this.#escaped();
  }

  /** The flag i is about the letters of ASCII. */
  #folded(atom: Atom): Atom {
    if (!this.#ignoresCase) return atom;
    return (code) => {
      const folded = code | 32;
      return atom(code) || (folded >= 97 && folded <= 122 && atom(code ^ 32));
    };
  }

  #takes(sign: string): boolean {
    if (!this.#text.startsWith(sign, this.#at)) return false;
    this.#at += sign.length;
    return true;
  }

  #match(sticky: RegExp): RegExpExecArray | null {
    sticky.lastIndex = this.#at;
    const found = sticky.exec(this.#text);
    if (found !== null) this.#at = sticky.lastIndex;
    return found;
  }

  #unexpected(): ExpressionError {
    return new ExpressionError(`'${this.#text.slice(this.#at, this.#at + 10)}' is not expected there`);
  }
}

export const isWordCode: Atom = (code) =>
  (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || code === 95 || (code >= 97 && code <= 122);
const space = /\s/;

const classes: Readonly<Record<string, Atom | undefined>> = {
  d: (code) => code >= 48 && code <= 57,
  w: isWordCode,
  s: (code) => (code < 128 ? code === 32 || (code >= 9 && code <= 13) : space.test(String.fromCharCode(code))),
};

const controls: Readonly<Record<string, number | undefined>> = { t: 9, n: 10, v: 11, f: 12, r: 13, "0": 0 };
