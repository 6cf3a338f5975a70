import { unreachable } from "@galatea/base";
import { alarmStates, type AlarmState } from "./alarm.ts";

/** The parsed rule of a composite alarm. */
export type AlarmRule =
  | { readonly is: "constant"; readonly value: boolean }
  | { readonly is: "state"; readonly state: AlarmState; readonly alarm: string }
  | { readonly is: "not"; readonly of: AlarmRule }
  | { readonly is: "and" | "or"; readonly of: readonly AlarmRule[] };

/** A syntax error in a rule, with its position. */
export class RuleError extends Error {}

const depthMax = 100;
const alarmsMax = 100;

/**
 * Reads `ALARM(name)`, `OK("a name")`, `INSUFFICIENT_DATA(arn)`, TRUE, FALSE, NOT, AND, OR and parentheses; NOT binds closest, then AND.
 * Throws RuleError.
 */
export function parseRule(text: string): AlarmRule {
  const reader = new RuleReader(text);
  const rule = reader.either(0);
  reader.end();
  if (alarmsOfRule(rule).length > alarmsMax) throw new RuleError(`a rule names ${alarmsMax} alarms at most`);
  return rule;
}

/** Returns the alarms that a rule names, each once. */
export function alarmsOfRule(rule: AlarmRule): readonly string[] {
  const names = new Set<string>();
  const visit = (each: AlarmRule): void => {
    if (each.is === "state") names.add(each.alarm);
    else if (each.is === "not") visit(each.of);
    else if (each.is !== "constant") each.of.forEach(visit);
  };
  visit(rule);
  return [...names];
}

export function ruleHolds(rule: AlarmRule, stateOf: (alarm: string) => AlarmState): boolean {
  switch (rule.is) {
    case "constant":
      return rule.value;
    case "state":
      return stateOf(rule.alarm) === rule.state;
    case "not":
      return !ruleHolds(rule.of, stateOf);
    case "and":
      return rule.of.every((each) => ruleHolds(each, stateOf));
    case "or":
      return rule.of.some((each) => ruleHolds(each, stateOf));
    default:
      return unreachable(rule);
  }
}

/** Returns the name in an alarm's ARN; a text that is no ARN is returned as it is. */
export function alarmNameOf(given: string): string {
  return /^arn:[^:]*:cloudwatch:[^:]*:[^:]*:alarm:(.+)$/s.exec(given)?.[1] ?? given;
}

class RuleReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  either(depth: number): AlarmRule {
    return this.#joined("or", () => this.#joined("and", () => this.#negated(depth)));
  }

  end(): void {
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#unexpected();
  }

  #joined(is: "and" | "or", next: () => AlarmRule): AlarmRule {
    const of = [next()];
    while (this.#word(is)) of.push(next());
    return of.length === 1 ? (of[0] as AlarmRule) : { is, of };
  }

  #negated(depth: number): AlarmRule {
    if (depth > depthMax) throw new RuleError(`a rule is ${depthMax} levels deep at most`);
    if (this.#word("not")) return { is: "not", of: this.#negated(depth + 1) };
    if (this.#sign("(")) {
      const rule = this.either(depth + 1);
      if (!this.#sign(")")) throw this.#unexpected();
      return rule;
    }
    if (this.#word("true")) return { is: "constant", value: true };
    if (this.#word("false")) return { is: "constant", value: false };
    for (const state of alarmStates) {
      if (this.#word(state)) return { is: "state", state, alarm: this.#alarm() };
    }
    throw this.#unexpected();
  }

  /** Parses `(name)`, `("name")` or `(arn)`. */
  #alarm(): string {
    if (!this.#sign("(")) throw this.#unexpected();
    this.#skipSpace();
    const found = /"([^"]+)"|[^\s()"]+/y;
    found.lastIndex = this.#at;
    const match = found.exec(this.#text);
    if (match === null) throw this.#unexpected();
    this.#at = found.lastIndex;
    if (!this.#sign(")")) throw this.#unexpected();
    return alarmNameOf(match[1] ?? match[0]);
  }

  /** Consumes a word, in any case, that no letter follows; returns whether it was there. */
  #word(word: string): boolean {
    this.#skipSpace();
    const found = this.#text.slice(this.#at, this.#at + word.length);
    if (found.toLowerCase() !== word.toLowerCase()) return false;
    if (/\w/.test(this.#text[this.#at + word.length] ?? "")) return false;
    this.#at += word.length;
    return true;
  }

  #sign(sign: string): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] !== sign) return false;
    this.#at += 1;
    return true;
  }

  #skipSpace(): void {
    while (/\s/.test(this.#text[this.#at] ?? "")) this.#at += 1;
  }

  #unexpected(): RuleError {
    const rest = this.#text.slice(this.#at, this.#at + 40);
    return new RuleError(rest === "" ? "the rule ends too early" : `'${rest}' is not expected there`);
  }
}
