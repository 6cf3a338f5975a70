import { nearestName } from "./spelling.ts";
import type { FieldShape, MessageShape, ValueShape } from "./text-shape.ts";
import { tokenize, type TextToken } from "./text-tokens.ts";
import { describeFound, scalarText } from "./text-values.ts";

/** A problem at one position of a configuration file. */
export interface TextProblem {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

const problemLengthMax = 1500;
export const textLimits = { bytesMax: 16 * 1024 * 1024, depthMax: 64, problemsMax: 100 } as const;

/**
 * Reads a text-format file and returns every problem that Triton's parser would reject, with its position. `normalised` is the content of
 * the file in the format's strictest spelling: booleans as true and false, one `name: value` after another. `normalised` is valid only if
 * there are no problems.
 */
export function walkText(
  source: string,
  shape: MessageShape,
): { problems: readonly TextProblem[]; normalised: string } {
  const walk = new Walk(tokenize(source));
  try {
    walk.fields(shape, null, "");
  } catch (stopped) {
    if (!(stopped instanceof Stop)) throw stopped;
  }
  return { problems: walk.problems, normalised: walk.out.join(" ") };
}

/** Thrown when the structure of the file is broken: later problems would only be consequences of the first one. */
class Stop extends Error {}

class Walk {
  readonly problems: TextProblem[] = [];
  readonly out: string[] = [];
  readonly #tokens: readonly TextToken[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly TextToken[]) {
    this.#tokens = tokens;
  }

  /** Reads the fields of one message up to its closing brace, or up to the end of the file when `open` is null. */
  fields(shape: MessageShape, open: TextToken | null, path: string): void {
    if (++this.#depth > textLimits.depthMax) this.#stop(`blocks nest deeper than ${textLimits.depthMax}`);
    const close = open === null ? null : open.text === "{" ? "}" : ">";
    const seen = new Map<string, string>();
    const oneofs = new Map<string, string>();
    const counts = new Map<string, number>();
    for (;;) {
      const token = this.#peek();
      if (token.kind === "end" && close === null) break;
      if (token.kind === "end") {
        this.#stop(`expected '${close}' for the '${open!.text}' of line ${open!.line}, found the end of the file`);
      }
      if (close !== null && this.#take(close)) break;
      if (token.kind !== "identifier") {
        const orClose = close === null ? "" : ` or '${close}'`;
        this.#stop(`expected a field name${orClose}${inside(path)}, found ${describeFound(token)}`);
      }
      this.#at += 1;
      const field = shape.fields.get(token.text);
      if (field === undefined) {
        this.#unknownField(token, shape, path);
      } else {
        this.#checkOnce(token, field, { seen, oneofs, path });
        this.#field(field, counts, path);
      }
      if (!this.#take(",")) this.#take(";");
    }
    this.#depth -= 1;
  }

  #unknownField(token: TextToken, shape: MessageShape, path: string): void {
    const known = [...shape.fields.keys()];
    const nearest = nearestName(token.text, known);
    const hint = nearest === null ? `; known are ${known.join(", ")}` : `; did you mean '${nearest}'?`;
    this.#problem(token, `unknown field '${token.text}' in ${where(shape, path)}${hint}`);
    this.#take(":");
    this.#skipValue(path);
  }

  #checkOnce(
    token: TextToken,
    field: FieldShape,
    state: { seen: Map<string, string>; oneofs: Map<string, string>; path: string },
  ): void {
    const name = join(state.path, field.name);
    if (!field.repeated && state.seen.has(field.name)) {
      this.#problem(token, `field '${name}' is set more than once (first ${state.seen.get(field.name)})`);
    }
    const other = field.oneof === null ? undefined : state.oneofs.get(field.oneof);
    if (other !== undefined && other !== field.name) {
      this.#problem(token, `field '${name}' excludes '${other}': only one '${field.oneof}' can be set`);
    }
    state.seen.set(field.name, `in line ${token.line}`);
    if (field.oneof !== null) state.oneofs.set(field.oneof, field.name);
  }

  /** Reads the value of a known field, or the list of values of a repeated field. */
  #field(field: FieldShape, counts: Map<string, number>, path: string): void {
    const name = join(path, field.name);
    const next = this.#peek();
    if (!this.#take(":") && field.value.kind !== "message") {
      this.#problem(next, `field '${name}': expected ':' before the value, found ${describeFound(next)}`);
    }
    const one = () => {
      const index = counts.get(field.name) ?? 0;
      counts.set(field.name, index + 1);
      this.out.push(field.value.kind === "message" ? field.name : `${field.name}:`);
      this.#value(field.value, field.repeated ? `${name}[${index}]` : name);
    };
    const list = this.#peek();
    if (!this.#is("[")) return one();
    if (!field.repeated) {
      this.#problem(
        list,
        `field '${name}': expected ${expectation(field.value)}, found a list; this field holds one value`,
      );
      return this.#skipValue(path);
    }
    this.#at += 1;
    if (this.#take("]")) return;
    for (;;) {
      one();
      if (this.#take("]")) return;
      const separator = this.#peek();
      if (!this.#take(",")) {
        this.#stop(`field '${name}': expected ',' or ']' in the list, found ${describeFound(separator)}`);
      }
    }
  }

  #value(value: ValueShape, path: string): void {
    const token = this.#peek();
    if (value.kind === "message") {
      if (!this.#take("{") && !this.#take("<")) {
        this.#problem(token, `field '${path}': expected ${expectation(value)}, found ${describeFound(token)}`);
        return this.#skipValue(path);
      }
      this.out.push("{");
      this.fields(value.shape(), token, path);
      this.out.push("}");
      return;
    }
    if (!this.#startsScalar(token)) {
      this.#problem(token, `field '${path}': expected ${expectation(value)}, found ${describeFound(token)}`);
      return this.#skipValue(path);
    }
    const tokens = this.#scalarTokens();
    const result = scalarText(value, tokens);
    if (result.ok) this.out.push(result.text);
    else this.#problem(token, `field '${path}': ${result.reason}`);
  }

  #startsScalar(token: TextToken): boolean {
    return ["identifier", "integer", "float", "string"].includes(token.kind) || token.text === "-";
  }

  /** Reads the tokens of a scalar: a sign and one token, or adjacent strings, which form one value. */
  #scalarTokens(): TextToken[] {
    const tokens = [this.#next()];
    if (tokens[0]!.text === "-") tokens.push(this.#next());
    while (tokens[0]!.kind === "string" && this.#peek().kind === "string") tokens.push(this.#next());
    return tokens;
  }

  /** Skips the value of an unknown field, so that later problems are found too. */
  #skipValue(path: string): void {
    const token = this.#peek();
    if (this.#startsScalar(token)) {
      this.#scalarTokens();
      return;
    }
    if (!["{", "<", "["].includes(token.text)) {
      this.#stop(`expected a value${inside(path)}, found ${describeFound(token)}`);
    }
    const closers: string[] = [];
    do {
      const inner = this.#next();
      if (inner.kind === "end" || inner.kind === "broken") {
        this.#at -= 1;
        this.#stop(
          `expected '${closers.at(-1)}' for the '${token.text}' of line ${token.line}, found ${describeFound(inner)}`,
        );
      }
      const closer = { "{": "}", "<": ">", "[": "]" }[inner.text];
      if (inner.kind === "punctuation" && closer !== undefined) closers.push(closer);
      else if (inner.kind === "punctuation" && inner.text === closers.at(-1)) closers.pop();
    } while (closers.length > 0);
  }

  #peek(): TextToken {
    return this.#tokens[Math.min(this.#at, this.#tokens.length - 1)]!;
  }

  #next(): TextToken {
    const token = this.#peek();
    this.#at += 1;
    return token;
  }

  #is(text: string): boolean {
    const token = this.#peek();
    return token.kind === "punctuation" && token.text === text;
  }

  #take(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#at += 1;
    return true;
  }

  #problem(token: TextToken, text: string): void {
    // A message is shortened because the text that it quotes may be megabytes long.
    const message = text.length <= problemLengthMax ? text : `${text.slice(0, problemLengthMax)}...`;
    this.problems.push({ line: token.line, column: token.column, message });
    if (this.problems.length >= textLimits.problemsMax) throw new Stop();
  }

  #stop(message: string): never {
    this.#problem(this.#peek(), message);
    throw new Stop();
  }
}

const join = (path: string, name: string) => (path === "" ? name : `${path}.${name}`);
const inside = (path: string) => (path === "" ? "" : ` in '${path}'`);
const where = (shape: MessageShape, path: string) => (path === "" ? shape.name : `'${path}' (${shape.name})`);

function expectation(value: ValueShape): string {
  switch (value.kind) {
    case "bool":
      return "true or false";
    case "string":
      return "a string in quotes";
    case "real":
      return "a number";
    case "integer":
      return "an integer";
    case "enum":
      return `a name of ${value.desc.name}`;
    default:
      return "a block '{ ... }'";
  }
}
