import { unreachable } from "@galatea/base";
import { functionArities } from "./functions.ts";
import {
  QueryError,
  type Arithmetic,
  type QueryComparison,
  type NamedExpression,
  type QueryExpression,
} from "./query.ts";
import { isWord, type QueryWord } from "./query-words.ts";
import { ExpressionError, SearchExpression } from "./search-expression.ts";

const depthMax = 50;
const comparisons: ReadonlySet<string> = new Set(["=", "!=", "<", "<=", ">", ">="]);

/** Reads the tokens of a query one after the other. */
export class QueryReader {
  readonly #text: string;
  readonly #words: readonly QueryWord[];
  #at = 0;
  #depth = 0;

  constructor(text: string, words: readonly QueryWord[]) {
    this.#text = text;
    this.#words = words;
  }

  get next(): QueryWord {
    return this.#words[this.#at] as QueryWord;
  }

  /** Consumes and returns the next token. */
  take(): QueryWord {
    const word = this.next;
    if (word.kind !== "end") this.#at += 1;
    return word;
  }

  takesSign(text: string): boolean {
    const is = this.next.kind === "sign" && this.next.text === text;
    if (is) this.#at += 1;
    return is;
  }

  takesWord(text: string): boolean {
    const is = isWord(this.next, text);
    if (is) this.#at += 1;
    return is;
  }

  expectSign(text: string): void {
    if (!this.takesSign(text)) throw this.unexpected(`'${text}'`);
  }

  /** Reads the name of an existing or new field. */
  name(): string {
    const word = this.take();
    if (word.kind !== "name") throw this.error("a field expected", word);
    return word.text;
  }

  unexpected(expected: string): QueryError {
    return this.error(`${expected} expected`, this.next);
  }

  error(message: string, { start, end }: QueryWord): QueryError {
    const found = this.#text.slice(start, Math.min(end, start + 40));
    return new QueryError(found === "" ? `${message} at the end` : `${message} instead of ${found}`, start, end);
  }

  /** Reads an expression with an alias, or with its own text as its name. */
  named(): NamedExpression {
    const start = this.next.start;
    const expression = this.expression();
    const text = this.#text.slice(start, (this.#words[this.#at - 1] as QueryWord).end);
    if (this.takesWord("as")) return { name: this.name(), expression };
    return { name: expression.is === "field" ? expression.name : text, expression };
  }

  /** Returns the text from an offset to the end of the last consumed token. */
  textFrom(start: number): string {
    return this.#text.slice(start, (this.#words[this.#at - 1] as QueryWord).end);
  }

  list<Item>(item: () => Item): readonly Item[] {
    const items = [item()];
    while (this.takesSign(",")) items.push(item());
    return items;
  }

  expression(): QueryExpression {
    return this.#deeper(() => this.#joined("or", () => this.#joined("and", () => this.#negated())));
  }

  #deeper(read: () => QueryExpression): QueryExpression {
    this.#depth += 1;
    if (this.#depth > depthMax) throw this.error(`expressions are ${depthMax} deep at most`, this.next);
    const found = read();
    this.#depth -= 1;
    return found;
  }

  #joined(is: "and" | "or", next: () => QueryExpression): QueryExpression {
    const of = [next()];
    while (this.takesWord(is)) of.push(next());
    return of.length === 1 ? (of[0] as QueryExpression) : { is, of };
  }

  #negated(): QueryExpression {
    if (this.takesWord("not")) return this.#deeper(() => ({ is: "not", of: this.#negated() }));
    return this.#compared();
  }

  #compared(): QueryExpression {
    const left = this.#sum();
    const word = this.next;
    if (word.kind === "sign" && comparisons.has(word.text)) {
      this.take();
      return { is: "compare", sign: word.text as QueryComparison, left, right: this.#sum() };
    }
    if (this.takesSign("=~")) return this.#like(left);
    const isNegated = this.takesWord("not");
    const found = this.takesWord("like") ? this.#like(left) : this.takesWord("in") ? this.#among(left) : null;
    if (found === null && isNegated) throw this.unexpected("like or in");
    return found === null ? left : isNegated ? { is: "not", of: found } : found;
  }

  /** Reads a text that has to be contained in another; it may be between percent signs, as in SQL. */
  #like(of: QueryExpression): QueryExpression {
    const word = this.take();
    if (word.kind === "text") return { is: "contains", of, part: word.text.replace(/^%(.*)%$/s, "$1") };
    if (word.kind !== "expression") throw this.error("a text or a regular expression expected", word);
    this.checkedExpression(word, word.text);
    return { is: "like", of, expression: word.text };
  }

  /** Compiles a regular expression, or throws a QueryError at its position. */
  checkedExpression(word: QueryWord, text: string): SearchExpression {
    try {
      return new SearchExpression(text);
    } catch (error) {
      if (error instanceof ExpressionError) throw new QueryError(error.message, word.start, word.end);
      throw error;
    }
  }

  #among(of: QueryExpression): QueryExpression {
    this.expectSign("[");
    const among = this.list(() => this.#sum());
    this.expectSign("]");
    return { is: "in", of, among };
  }

  #sum(): QueryExpression {
    return this.#computed(["+", "-"], () => this.#computed(["*", "/", "%"], () => this.#power()));
  }

  #computed(signs: readonly Arithmetic[], next: () => QueryExpression): QueryExpression {
    let left = next();
    for (;;) {
      const sign = signs.find((each) => this.takesSign(each));
      if (sign === undefined) return left;
      left = { is: "compute", sign, left, right: next() };
    }
  }

  #power(): QueryExpression {
    const left = this.#one();
    if (!this.takesSign("^")) return left;
    return this.#deeper(() => ({ is: "compute", sign: "^", left, right: this.#power() }));
  }

  #one(): QueryExpression {
    if (this.takesSign("-")) {
      return this.#deeper(() => ({ is: "compute", sign: "-", left: { is: "value", value: 0 }, right: this.#one() }));
    }
    if (this.takesSign("(")) {
      const inner = this.expression();
      this.expectSign(")");
      return inner;
    }
    const word = this.take();
    switch (word.kind) {
      case "number":
        return { is: "value", value: word.value };
      case "text":
        return { is: "value", value: word.text };
      case "duration":
        return { is: "duration", ms: word.ms };
      case "name":
        if (!word.isQuoted && this.takesSign("(")) return this.#call(word);
        return { is: "field", name: word.text };
      case "expression":
      case "sign":
      case "end":
        throw this.error("a value expected", word);
      default:
        return unreachable(word);
    }
  }

  #call(word: QueryWord & { readonly text: string }): QueryExpression {
    const name = word.text.toLowerCase();
    const arity = functionArities.get(name);
    if (arity === undefined) throw new QueryError(`unknown function ${word.text}`, word.start, word.end);
    const of = this.takesSign(")") ? [] : this.list(() => this.expression());
    if (of.length > 0) this.expectSign(")");
    if (of.length < arity.least || of.length > arity.most) {
      throw new QueryError(`the function ${word.text} does not take ${of.length} arguments`, word.start, word.end);
    }
    return { is: "call", name, of };
  }
}
