import { AwsError } from "@galatea/base";

/** What costs most to look for: as many as CloudWatch Logs allows of a pattern. */
const countedMax = { "regular expressions": 2, wildcards: 3 } as const;

export function invalidPattern(detail: string): AwsError {
  return new AwsError("InvalidParameterException", `Invalid filter pattern: ${detail}`);
}

/** A filter pattern that is read from its beginning to its end, and the place that has been reached. */
export class PatternText {
  readonly text: string;
  #at = 0;
  readonly #counts = { "regular expressions": 0, wildcards: 0 };

  constructor(text: string) {
    this.text = text;
  }

  /** How much of the text is behind. */
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

  /** Returns whether the sign comes next; where it does, it is behind afterwards. */
  takes(sign: string): boolean {
    this.skipSpace();
    if (!this.text.startsWith(sign, this.#at)) return false;
    this.#at += sign.length;
    return true;
  }

  expect(sign: string): void {
    if (!this.takes(sign)) throw invalidPattern(`'${sign}' expected ${this.place()}`);
  }

  /** What a sticky expression finds here, without any space before it; null where it finds nothing. */
  match(pattern: RegExp): RegExpExecArray | null {
    const sticky = new RegExp(pattern, "y");
    sticky.lastIndex = this.#at;
    const found = sticky.exec(this.text);
    if (found !== null) this.#at = sticky.lastIndex;
    return found;
  }

  /** Throws for one too many. */
  count(what: keyof typeof countedMax): void {
    this.#counts[what] += 1;
    if (this.#counts[what] > countedMax[what]) throw invalidPattern(`it may have ${countedMax[what]} ${what} at most`);
  }

  /** For a sentence that says where something is wrong. */
  place(): string {
    return this.#at >= this.text.length ? "at the end" : `at character ${this.#at + 1}`;
  }
}
