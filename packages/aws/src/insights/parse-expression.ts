import { unreachable } from "@galatea/base";
import { functionArities } from "./functions.ts";
import {
  QueryError,
  type ArithmeticOperator,
  type QueryComparison,
  type NamedExpression,
  type QueryExpression,
} from "./query.ts";
import { isKeyword, type QueryToken } from "./query-tokens.ts";
import { RegexError, LinearTimeRegex } from "./search-expression.ts";

const depthMax = 50;
const comparisons: ReadonlySet<string> = new Set(["=", "!=", "<", "<=", ">", ">="]);

/** A reader that consumes the tokens of a query in order, and parses expressions. */
export class QueryTokenReader {
  readonly #text: string;
  readonly #words: readonly QueryToken[];
  #at = 0;
  #depth = 0;

  constructor(text: string, words: readonly QueryToken[]) {
    this.#text = text;
    this.#words = words;
  }

  get next(): QueryToken {
    return this.#words[this.#at] as QueryToken;
  }

  /** Consumes and returns the next token. */
  consume(): QueryToken {
    const word = this.next;
    if (word.kind !== "end") this.#at += 1;
    return word;
  }

  consumeSign(text: string): boolean {
    const is = this.next.kind === "sign" && this.next.text === text;
    if (is) this.#at += 1;
    return is;
  }

  consumeKeyword(text: string): boolean {
    const is = isKeyword(this.next, text);
    if (is) this.#at += 1;
    return is;
  }

  expectSign(text: string): void {
    if (!this.consumeSign(text)) throw this.unexpected(`'${text}'`);
  }

  /** Reads the name of an existing or new field. */
  fieldName(): string {
    const word = this.consume();
    if (word.kind !== "name") throw this.error("a field expected", word);
    return word.text;
  }

  unexpected(expected: string): QueryError {
    return this.error(`${expected} expected`, this.next);
  }

  error(message: string, { start, end }: QueryToken): QueryError {
    const found = this.#text.slice(start, Math.min(end, start + 40));
    return new QueryError(found === "" ? `${message} at the end` : `${message} instead of ${found}`, start, end);
  }

  /** Parses an expression with its optional alias (`as name`); without an alias, the name is the expression's text. */
  namedExpression(): NamedExpression {
    const start = this.next.start;
    const expression = this.expression();
    const text = this.#text.slice(start, (this.#words[this.#at - 1] as QueryToken).end);
    if (this.consumeKeyword("as")) return { name: this.fieldName(), expression };
    return { name: expression.is === "field" ? expression.name : text, expression };
  }

  /** Returns the text from an offset to the end of the last consumed token. */
  textFrom(start: number): string {
    return this.#text.slice(start, (this.#words[this.#at - 1] as QueryToken).end);
  }

  list<Item>(item: () => Item): readonly Item[] {
    const items = [item()];
    while (this.consumeSign(",")) items.push(item());
    return items;
  }

  expression(): QueryExpression {
    return this.#nested(() => this.#logical("or", () => this.#logical("and", () => this.#negated())));
  }

  #nested(read: () => QueryExpression): QueryExpression {
    this.#depth += 1;
    if (this.#depth > depthMax) throw this.error(`expressions may be nested at most ${depthMax} deep`, this.next);
    const found = read();
    this.#depth -= 1;
    return found;
  }

  #logical(is: "and" | "or", next: () => QueryExpression): QueryExpression {
    const of = [next()];
    while (this.consumeKeyword(is)) of.push(next());
    return of.length === 1 ? (of[0] as QueryExpression) : { is, of };
  }

  #negated(): QueryExpression {
    if (this.consumeKeyword("not")) return this.#nested(() => ({ is: "not", of: this.#negated() }));
    return this.#compared();
  }

  #compared(): QueryExpression {
    const left = this.#sum();
    const word = this.next;
    if (word.kind === "sign" && comparisons.has(word.text)) {
      this.consume();
      return { is: "compare", sign: word.text as QueryComparison, left, right: this.#sum() };
    }
    if (this.consumeSign("=~")) return this.#like(left);
    const isNegated = this.consumeKeyword("not");
    const found = this.consumeKeyword("like")
      ? this.#like(left)
      : this.consumeKeyword("in")
        ? this.#inList(left)
        : null;
    if (found === null && isNegated) throw this.unexpected("like or in");
    return found === null ? left : isNegated ? { is: "not", of: found } : found;
  }

  /** Parses the right side of `like`: a text to search for, with or without SQL's percent signs around it, or a regular expression. */
  #like(of: QueryExpression): QueryExpression {
    const word = this.consume();
    if (word.kind === "text") return { is: "contains", of, part: word.text.replace(/^%(.*)%$/s, "$1") };
    if (word.kind !== "expression") throw this.error("a text or a regular expression expected", word);
    this.checkedExpression(word, word.text);
    return { is: "like", of, expression: word.text };
  }

  /** Compiles a regular expression, or throws a QueryError at its position. */
  checkedExpression(word: QueryToken, text: string): LinearTimeRegex {
    try {
      return new LinearTimeRegex(text);
    } catch (error) {
      if (error instanceof RegexError) throw new QueryError(error.message, word.start, word.end);
      throw error;
    }
  }

  #inList(of: QueryExpression): QueryExpression {
    this.expectSign("[");
    const among = this.list(() => this.#sum());
    this.expectSign("]");
    return { is: "in", of, among };
  }

  #sum(): QueryExpression {
    return this.#computed(["+", "-"], () => this.#computed(["*", "/", "%"], () => this.#power()));
  }

  #computed(signs: readonly ArithmeticOperator[], next: () => QueryExpression): QueryExpression {
    let left = next();
    for (;;) {
      const sign = signs.find((each) => this.consumeSign(each));
      if (sign === undefined) return left;
      left = { is: "compute", sign, left, right: next() };
    }
  }

  #power(): QueryExpression {
    const left = this.#primary();
    if (!this.consumeSign("^")) return left;
    return this.#nested(() => ({ is: "compute", sign: "^", left, right: this.#power() }));
  }

  #primary(): QueryExpression {
    if (this.consumeSign("-")) {
      return this.#nested(() => ({
        is: "compute",
        sign: "-",
        left: { is: "value", value: 0 },
        right: this.#primary(),
      }));
    }
    if (this.consumeSign("(")) {
      const inner = this.expression();
      this.expectSign(")");
      return inner;
    }
    const word = this.consume();
    switch (word.kind) {
      case "number":
        return { is: "value", value: word.value };
      case "text":
        return { is: "value", value: word.text };
      case "duration":
        return { is: "duration", ms: word.ms };
      case "name":
        if (!word.isQuoted && this.consumeSign("(")) return this.#call(word);
        return { is: "field", name: word.text };
      case "expression":
      case "sign":
      case "end":
        throw this.error("a value expected", word);
      default:
        return unreachable(word);
    }
  }

  #call(word: QueryToken & { readonly text: string }): QueryExpression {
    const name = word.text.toLowerCase();
    const arity = functionArities.get(name);
    if (arity === undefined) throw new QueryError(`unknown function ${word.text}`, word.start, word.end);
    const of = this.consumeSign(")") ? [] : this.list(() => this.expression());
    if (of.length > 0) this.expectSign(")");
    if (of.length < arity.argumentsMin || of.length > arity.argumentsMax) {
      throw new QueryError(`the function ${word.text} does not take ${of.length} arguments`, word.start, word.end);
    }
    return { is: "call", name, of };
  }
}
