import { AwsError, unreachable } from "@galatea/base";

/** Values by time in milliseconds. */
export type TimeSeries = ReadonlyMap<number, number>;
export type MathValue = number | TimeSeries | readonly TimeSeries[];

/**
 * A computation that yields between its steps, so that the event loop can run other work. If it yields a promise, it
 * resumes with the promise's value. The generator returns the result.
 */
export type ComputationSteps<Result> = Generator<void | Promise<unknown>, Result>;

export interface MathScope {
  /** Returns the result of the query with this id; undefined if there is none. */
  resolve(id: string): ComputationSteps<MathValue | undefined>;
  /** `METRICS()`: all metric queries; `METRICS("x")`: those whose id contains x. */
  metrics(contains: string): ComputationSteps<readonly TimeSeries[]>;
  /** `SEARCH("...", "Sum", 300)`: a series for each matching metric; null: the expression's own period. */
  search(text: string, statistic: string, periodSeconds: number | null): ComputationSteps<readonly TimeSeries[]>;
  /** All timestamps of the requested range, in milliseconds. */
  readonly times: readonly number[];
  readonly budget: MathBudget;
}

/** Number of values that are computed between two checks of the clock. */
const valuesPerTick = 2048;

/** The limit on the values that one request may compute. */
export class MathBudget {
  readonly #valuesMax: number;
  #count = 0;

  constructor(valuesMax: number) {
    this.#valuesMax = valuesMax;
  }

  /** Counts a value; returns whether to yield to the event loop now. */
  countValue(): boolean {
    this.#count += 1;
    if (this.#count > this.#valuesMax) {
      const text = `The expressions of one request may compute ${this.#valuesMax} values. Increase Period or decrease the time range.`;
      throw new AwsError("ValidationError", text);
    }
    return this.#count % valuesPerTick === 0;
  }
}

type Token =
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "name"; readonly value: string }
  | { readonly kind: "sign"; readonly value: string };

type Node =
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "name"; readonly value: string }
  | { readonly kind: "call"; readonly name: string; readonly parameters: readonly Node[] }
  | { readonly kind: "binary"; readonly sign: string; readonly left: Node; readonly right: Node };

const depthMax = 32;

/**
 * Evaluates metric math: `+ - * /`, comparisons, AND and OR, SUM, AVG, MIN, MAX, FILL, IF, RATE, METRICS, SEARCH. For
 * another function, throws an error that names it.
 */
export function evaluateExpression(expression: string, scope: MathScope): ComputationSteps<MathValue> {
  return evaluate(parse(expression), scope);
}

/** Returns the ids of other queries that an expression reads. */
export function queryIdsIn(expression: string): readonly string[] {
  return tokens(expression).flatMap((token) => (token.kind === "name" ? [token.value] : []));
}

export function mathError(detail: string): AwsError {
  return new AwsError("ValidationError", `Error in expression: ${detail}`);
}

function tokens(expression: string): readonly Token[] {
  const found: Token[] = [];
  const pattern =
    /\s*(?:(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)|(["'])(.*?)\2|([A-Za-z_]\w*)|(<=|>=|==|!=|&&|\|\||[-+*/(),<>]))/y;
  const text = expression.trimEnd();
  while (pattern.lastIndex < text.length) {
    const at = pattern.lastIndex;
    const match = pattern.exec(text);
    if (match === null) throw mathError(`unexpected character at position ${at}: ${text.slice(at, at + 12)}`);
    if (match[1] !== undefined) found.push({ kind: "number", value: Number(match[1]) });
    else if (match[3] !== undefined) found.push({ kind: "text", value: match[3] });
    else if (match[4] !== undefined) found.push({ kind: "name", value: match[4] });
    else found.push({ kind: "sign", value: match[5] as string });
  }
  return found;
}

const precedence: readonly (readonly string[])[] = [
  ["OR", "||"],
  ["AND", "&&"],
  ["<", ">", "<=", ">=", "==", "!="],
  ["+", "-"],
  ["*", "/"],
];

function parse(expression: string): Node {
  const all = tokens(expression);
  let at = 0;
  const take = (sign: string): void => {
    if (all[at]?.value !== sign) throw mathError(`expected ${sign} but found ${all[at]?.value ?? "the end"}`);
    at++;
  };
  const binary = (level: number, depth: number): Node => {
    const signs = precedence[level];
    if (signs === undefined) return primary(depth);
    let left = binary(level + 1, depth);
    for (let token = all[at]; token !== undefined && token.kind !== "text"; token = all[at]) {
      if (!signs.includes(String(token.value))) break;
      at++;
      left = { kind: "binary", sign: String(token.value), left, right: binary(level + 1, depth) };
    }
    return left;
  };
  const primary = (depth: number): Node => {
    if (depth > depthMax) throw mathError("it is nested too deeply");
    const token = all[at++];
    if (token === undefined) throw mathError("it ends too early");
    if (token.kind === "number" || token.kind === "text") return token;
    if (token.kind === "name") return all[at]?.value === "(" ? call(token.value, depth) : token;
    if (token.value === "(") {
      const inside = binary(0, depth + 1);
      take(")");
      return inside;
    }
    if (token.value === "-") {
      return { kind: "binary", sign: "-", left: { kind: "number", value: 0 }, right: primary(depth + 1) };
    }
    throw mathError(`unexpected ${token.value}`);
  };
  const call = (name: string, depth: number): Node => {
    take("(");
    const parameters: Node[] = [];
    while (all[at]?.value !== ")") {
      if (parameters.length > 0) take(",");
      parameters.push(binary(0, depth + 1));
    }
    take(")");
    return { kind: "call", name: name.toUpperCase(), parameters };
  };
  const parsed = binary(0, 0);
  if (at < all.length) throw mathError(`unexpected ${all[at]?.value}`);
  return parsed;
}

const operations: Readonly<Record<string, (left: number, right: number) => number>> = {
  "+": (left, right) => left + right,
  "-": (left, right) => left - right,
  "*": (left, right) => left * right,
  "/": (left, right) => left / right,
  "<": (left, right) => Number(left < right),
  ">": (left, right) => Number(left > right),
  "<=": (left, right) => Number(left <= right),
  ">=": (left, right) => Number(left >= right),
  "==": (left, right) => Number(left === right),
  "!=": (left, right) => Number(left !== right),
  AND: (left, right) => Number(left !== 0 && right !== 0),
  OR: (left, right) => Number(left !== 0 || right !== 0),
};
const spellings: Readonly<Record<string, string>> = { "&&": "AND", "||": "OR" };

function* evaluate(node: Node, scope: MathScope): ComputationSteps<MathValue> {
  switch (node.kind) {
    case "number":
      return node.value;
    case "text":
      throw mathError(`a text is not allowed here: ${node.value}`);
    case "name": {
      const value = yield* scope.resolve(node.value);
      if (value === undefined) throw mathError(`there is no metric or expression with the id ${node.value}`);
      return value;
    }
    case "call": {
      const run = Object.hasOwn(functions, node.name) ? functions[node.name] : undefined;
      if (run === undefined) throw mathError(`the function ${node.name} is not supported here`);
      return yield* run(node.parameters, scope);
    }
    case "binary": {
      const operation = operations[spellings[node.sign] ?? node.sign] as Operation;
      return yield* combine(yield* evaluate(node.left, scope), yield* evaluate(node.right, scope), operation, scope);
    }
    default:
      return unreachable(node);
  }
}

type Operation = (left: number, right: number) => number;

/** Combines two series at the times at which both have a value. A division by zero produces no value. */
function* combine(
  left: MathValue,
  right: MathValue,
  operation: Operation,
  scope: MathScope,
): ComputationSteps<MathValue> {
  if (isArray(left)) return yield* each(left, (one) => combine(one, right, operation, scope));
  if (isArray(right)) return yield* each(right, (one) => combine(left, one, operation, scope));
  if (typeof left === "number" && typeof right === "number") return operation(left, right);
  const series = typeof left === "number" ? (right as TimeSeries) : left;
  const combined = new Map<number, number>();
  for (const time of series.keys()) {
    if (scope.budget.countValue()) yield;
    const [a, b] = [
      typeof left === "number" ? left : left.get(time),
      typeof right === "number" ? right : right.get(time),
    ];
    if (a === undefined || b === undefined) continue;
    const value = operation(a, b);
    if (Number.isFinite(value)) combined.set(time, value);
  }
  return combined;
}

type MathFunction = (parameters: readonly Node[], scope: MathScope) => ComputationSteps<MathValue>;

const functions: Readonly<Record<string, MathFunction>> = {
  METRICS: ([contains], scope) => scope.metrics(contains?.kind === "text" ? contains.value : ""),
  SEARCH([text, statistic, period], scope) {
    if (text?.kind !== "text" || statistic?.kind !== "text")
      throw mathError("SEARCH takes a search and a statistic as texts");
    if (period !== undefined && period.kind !== "number")
      throw mathError("SEARCH takes its period as a number of seconds");
    return scope.search(text.value, statistic.value, period?.value ?? null);
  },
  SUM: reduction((sum, value) => sum + value),
  AVG: reduction(
    (sum, value) => sum + value,
    (sum, count) => sum / count,
  ),
  MIN: reduction(Math.min),
  MAX: reduction(Math.max),
  *RATE(parameters, scope) {
    return yield* each(yield* argument(parameters, 0, scope), (series) => rate(series, scope));
  },
  *FILL(parameters, scope) {
    return yield* each(yield* argument(parameters, 0, scope), (series) => fill(series, parameters[1], scope));
  },
  *IF(parameters, scope) {
    const condition = yield* argument(parameters, 0, scope);
    const then = yield* argument(parameters, 1, scope);
    const otherwise = parameters.length > 2 ? yield* argument(parameters, 2, scope) : new Map<number, number>();
    if (isArray(condition) || isArray(then) || isArray(otherwise))
      throw mathError("IF does not accept an array of series");
    const chosen = new Map<number, number>();
    for (const time of scope.times) {
      if (scope.budget.countValue()) yield;
      const test = typeof condition === "number" ? condition : condition.get(time);
      if (test === undefined) continue;
      const branch = test === 0 ? otherwise : then;
      const value = typeof branch === "number" ? branch : branch.get(time);
      if (value !== undefined) chosen.set(time, value);
    }
    return chosen;
  },
};

/** Reduces one series to a single number over time, and several series to one series with a value for each time. */
function reduction(add: Operation, finish: Operation = (total) => total): MathFunction {
  return function* reduce(parameters, scope) {
    const input: MathValue[] = [];
    for (let index = 0; index < parameters.length; index += 1) input.push(yield* argument(parameters, index, scope));
    const [only] = input;
    if (input.length === 1 && only instanceof Map) {
      const [total] = (yield* totals([only as TimeSeries], () => 0, add, scope)).values();
      return total === undefined ? 0 : finish(total.value, total.count);
    }
    const all = input.flatMap((value) => (isArray(value) ? value : [asSeries(value)]));
    const reduced = new Map<number, number>();
    for (const [time, { value, count }] of yield* totals(all, (time) => time, add, scope)) {
      reduced.set(time, finish(value, count));
    }
    return reduced;
  };
}

function* totals(
  all: readonly TimeSeries[],
  placeOf: (time: number) => number,
  add: Operation,
  scope: MathScope,
): ComputationSteps<Map<number, { value: number; count: number }>> {
  const found = new Map<number, { value: number; count: number }>();
  for (const series of all) {
    for (const [time, value] of series) {
      if (scope.budget.countValue()) yield;
      const total = found.get(placeOf(time));
      if (total === undefined) found.set(placeOf(time), { value, count: 1 });
      else {
        total.value = add(total.value, value);
        total.count += 1;
      }
    }
  }
  return found;
}

function argument(parameters: readonly Node[], index: number, scope: MathScope): ComputationSteps<MathValue> {
  const node = parameters[index];
  if (node === undefined) throw mathError(`parameter ${index + 1} is missing`);
  return evaluate(node, scope);
}

function* each(
  value: MathValue,
  change: (series: TimeSeries) => ComputationSteps<MathValue>,
): ComputationSteps<MathValue> {
  if (!isArray(value)) return yield* change(asSeries(value));
  const changed: TimeSeries[] = [];
  for (const series of value) changed.push(asSeries(yield* change(series)));
  return changed;
}

/** Returns the change per second since the previous point. */
function* rate(series: TimeSeries, scope: MathScope): ComputationSteps<TimeSeries> {
  const rates = new Map<number, number>();
  let before: number | undefined;
  for (const time of [...series.keys()].sort((a, b) => a - b)) {
    if (scope.budget.countValue()) yield;
    if (before !== undefined) {
      const change = (series.get(time) as number) - (series.get(before) as number);
      rates.set(time, change / ((time - before) / 1000));
    }
    before = time;
  }
  return rates;
}

function* fill(series: TimeSeries, node: Node | undefined, scope: MathScope): ComputationSteps<TimeSeries> {
  if (node === undefined || (node.kind === "name" && node.value !== "REPEAT") || node.kind === "text") {
    throw mathError("FILL needs a number or REPEAT");
  }
  const filled = new Map<number, number>();
  let last: number | undefined;
  for (const time of scope.times) {
    if (scope.budget.countValue()) yield;
    const known = series.get(time);
    if (known !== undefined) last = known;
    const value = known ?? (node.kind === "number" ? node.value : node.kind === "name" ? last : undefined);
    if (value !== undefined) filled.set(time, value);
  }
  return filled;
}

function isArray(value: MathValue): value is readonly TimeSeries[] {
  return Array.isArray(value);
}

function asSeries(value: MathValue): TimeSeries {
  if (value instanceof Map) return value as TimeSeries;
  throw mathError("a series was expected");
}
