import { AwsError } from "@galatea/base";

/** Maximum numbers of the most expensive elements of a pattern, as in CloudWatch Logs. */
const countedMax = { "regular expressions": 2, wildcards: 3 } as const;

export function invalidPattern(detail: string): AwsError {
  return new AwsError("InvalidParameterException", `Invalid filter pattern: ${detail}`);
}

/** A parser's cursor over a filter pattern. */
export class PatternText {
  readonly text: string;
  #at = 0;
  readonly #counts = { "regular expressions": 0, wildcards: 0 };

  constructor(text: string) {
    this.text = text;
  }

  /** Offset of the next character. */
  get at(): number {
    return this.#at;
  }

  get isAtEnd(): boolean {
    this.skipSpace();
    return this.#at >= this.text.length;
  }

  skipSpace(): void {
    while (/\s/.test(this.text.charAt(this.#at))) this.#at++;
  }

  /** Consumes a sign if it comes next. Returns whether it did. */
  consume(sign: string): boolean {
    this.skipSpace();
    if (!this.text.startsWith(sign, this.#at)) return false;
    this.#at += sign.length;
    return true;
  }

  expect(sign: string): void {
    if (!this.consume(sign)) throw invalidPattern(`expected '${sign}' ${this.positionText()}`);
  }

  /** Consumes the match of an expression at the current offset, without skipping spaces; null if there is none. */
  match(pattern: RegExp): RegExpExecArray | null {
    const sticky = new RegExp(pattern, "y");
    sticky.lastIndex = this.#at;
    const found = sticky.exec(this.text);
    if (found !== null) this.#at = sticky.lastIndex;
    return found;
  }

  /** Counts an expensive element of the pattern. Throws AwsError above its limit. */
  countCostlyElement(what: keyof typeof countedMax): void {
    this.#counts[what] += 1;
    if (this.#counts[what] > countedMax[what]) throw invalidPattern(`it can have at most ${countedMax[what]} ${what}`);
  }

  /** Returns the current position, for an error text. */
  positionText(): string {
    return this.#at >= this.text.length ? "at the end" : `at character ${this.#at + 1}`;
  }
}
