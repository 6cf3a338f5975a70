import { unreachable } from "@galatea/base";
import { alarmStates, type AlarmState } from "./alarm.ts";

/** The parsed rule of a composite alarm. */
export type AlarmRule =
  | { readonly is: "constant"; readonly value: boolean }
  | { readonly is: "state"; readonly state: AlarmState; readonly alarm: string }
  | { readonly is: "not"; readonly of: AlarmRule }
  | { readonly is: "and" | "or"; readonly of: readonly AlarmRule[] };

/** A syntax error in a composite alarm's rule. The message quotes the unexpected text. */
export class AlarmRuleError extends Error {}

const depthMax = 100;
const alarmsMax = 100;

/**
 * Parses a rule of `ALARM(name)`, `OK("a name")`, `INSUFFICIENT_DATA(arn)`, TRUE, FALSE, NOT, AND, OR and parentheses.
 * NOT has the highest precedence, then AND, then OR. Throws AlarmRuleError.
 */
export function parseAlarmRule(text: string): AlarmRule {
  const reader = new RuleReader(text);
  const rule = reader.either(0);
  reader.end();
  if (alarmNamesInRule(rule).length > alarmsMax)
    throw new AlarmRuleError(`the rule contains more than ${alarmsMax} alarms`);
  return rule;
}

/** Returns the distinct alarm names in a rule. */
export function alarmNamesInRule(rule: AlarmRule): readonly string[] {
  const names = new Set<string>();
  const visit = (each: AlarmRule): void => {
    if (each.is === "state") names.add(each.alarm);
    else if (each.is === "not") visit(each.of);
    else if (each.is !== "constant") each.of.forEach(visit);
  };
  visit(rule);
  return [...names];
}

export function isRuleTrue(rule: AlarmRule, stateOf: (alarm: string) => AlarmState): boolean {
  switch (rule.is) {
    case "constant":
      return rule.value;
    case "state":
      return stateOf(rule.alarm) === rule.state;
    case "not":
      return !isRuleTrue(rule.of, stateOf);
    case "and":
      return rule.of.every((each) => isRuleTrue(each, stateOf));
    case "or":
      return rule.of.some((each) => isRuleTrue(each, stateOf));
    default:
      return unreachable(rule);
  }
}

/**
 * Returns the alarm name in an alarm's ARN. Returns any other text unchanged, because rules may contain names or ARNs.
 */
export function alarmNameFromArn(input: string): string {
  return /^arn:[^:]*:cloudwatch:[^:]*:[^:]*:alarm:(.+)$/s.exec(input)?.[1] ?? input;
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
    if (depth > depthMax) throw new AlarmRuleError(`the rule is nested more than ${depthMax} levels deep`);
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
    return alarmNameFromArn(match[1] ?? match[0]);
  }

  /**
   * Consumes a keyword, ignoring case, and returns true. If the next characters are not the keyword, returns false and
   * consumes only white space.
   */
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

  #unexpected(): AlarmRuleError {
    const rest = this.#text.slice(this.#at, this.#at + 40);
    return new AlarmRuleError(rest === "" ? "unexpected end of the rule" : `unexpected text '${rest}'`);
  }
}
