import { unreachable } from "@galatea/base";
import { aggregationOf, QueryTooLarge, type Aggregation } from "./aggregation.ts";
import { evaluator, holds, orderOf, type Evaluate } from "./evaluate.ts";
import { rowsMax } from "./parse-query.ts";
import { fieldParser } from "./parsed-fields.ts";
import type { NamedExpression, QueryCommand, SortKey } from "./query.ts";
import { QueryRecord } from "./query-record.ts";

/** One running command. It passes records on at once, or after the last one. */
export interface QueryStage {
  take(record: QueryRecord): void;
  end(): void;
}

type Next = QueryStage;

const groupsMax = 10_000;
/** Maximum size of a query's rows; further ones are dropped, as those above its limit are. */
export const rowsLengthMax = 8 * 1024 * 1024;

export interface StageOptions {
  readonly next: Next;
  readonly nowMs: number;
  /** Maximum number of rows that a sort keeps. */
  readonly keptMax: number;
}

export function stageOf(command: QueryCommand, { next, nowMs, keptMax }: StageOptions): QueryStage {
  switch (command.do) {
    case "fields":
    case "display":
      return naming(command.of, nowMs, next);
    case "filter": {
      const condition = evaluator(command.condition, nowMs);
      return passing((record) => {
        if (holds(condition(record))) next.take(record);
      }, next);
    }
    case "parse": {
      const of = evaluator(command.of, nowMs);
      const parse = fieldParser(command);
      return passing((record) => {
        const found = parse(of(record));
        for (const [index, name] of command.names.entries()) record.set(name, found?.[index] ?? null);
        next.take(record);
      }, next);
    }
    case "stats":
      return new Grouping(command, nowMs, next);
    case "sort":
      return new Sorting(command.by, { next, nowMs, keptMax });
    case "limit": {
      let left = command.count;
      return passing((record) => {
        if (left > 0) next.take(record);
        left -= 1;
      }, next);
    }
    case "dedup":
      return deduplicating(
        command.by.map((each) => evaluator(each, nowMs)),
        next,
      );
    default:
      return unreachable(command);
  }
}

function passing(take: (record: QueryRecord) => void, next: Next): QueryStage {
  return { take, end: () => next.end() };
}

/** Adds computed values by name. */
function naming(of: readonly NamedExpression[], nowMs: number, next: Next): QueryStage {
  const computed = of
    .filter(({ name, expression }) => expression.is !== "field" || expression.name !== name)
    .map(({ name, expression }) => ({ name, of: evaluator(expression, nowMs) }));
  return passing((record) => {
    for (const { name, of: value } of computed) record.set(name, value(record));
    next.take(record);
  }, next);
}

/** Keeps the first record of each combination of values. */
function deduplicating(by: readonly Evaluate[], next: Next): QueryStage {
  const seen = new Set<string>();
  return passing((record) => {
    const key = JSON.stringify(by.map((each) => each(record)));
    if (seen.has(key) || seen.size >= rowsMax) return;
    seen.add(key);
    next.take(record);
  }, next);
}

class Grouping implements QueryStage {
  readonly #command: Extract<QueryCommand, { readonly do: "stats" }>;
  readonly #by: readonly Evaluate[];
  readonly #of: readonly (Evaluate | null)[];
  readonly #groups = new Map<string, { readonly row: QueryRecord; readonly aggregations: readonly Aggregation[] }>();
  readonly #next: Next;

  constructor(command: Extract<QueryCommand, { readonly do: "stats" }>, nowMs: number, next: Next) {
    this.#command = command;
    this.#by = command.by.map(({ expression }) => evaluator(expression, nowMs));
    this.#of = command.aggregates.map(({ expression }) => (expression === null ? null : evaluator(expression, nowMs)));
    this.#next = next;
  }

  take(record: QueryRecord): void {
    const values = this.#by.map((each) => each(record));
    const key = JSON.stringify(values);
    let group = this.#groups.get(key);
    if (group === undefined) {
      if (this.#groups.size >= groupsMax) throw new QueryTooLarge(`stats makes ${groupsMax} groups at most`);
      group = { row: new QueryRecord(null), aggregations: this.#command.aggregates.map(aggregationOf) };
      for (const [index, { name }] of this.#command.by.entries()) group.row.set(name, values[index] ?? null);
      this.#groups.set(key, group);
    }
    for (const [index, aggregation] of group.aggregations.entries()) {
      aggregation.add(this.#of[index]?.(record) ?? null, record.timestampMs);
    }
  }

  end(): void {
    // Without groups there is always one row.
    if (this.#by.length === 0 && this.#groups.size === 0) {
      const aggregations = this.#command.aggregates.map(aggregationOf);
      this.#groups.set("", { row: new QueryRecord(null), aggregations });
    }
    for (const { row, aggregations } of this.#groups.values()) {
      for (const [index, aggregation] of aggregations.entries()) {
        row.set((this.#command.aggregates[index] as { name: string }).name, aggregation.result());
      }
      this.#next.take(row);
    }
    this.#groups.clear();
    this.#next.end();
  }
}

/** Keeps the first rows in order, of any number. */
class Sorting implements QueryStage {
  readonly #keys: readonly { readonly of: Evaluate; readonly direction: number }[];
  readonly #options: StageOptions;
  #held: { readonly record: QueryRecord; readonly values: ReturnType<Evaluate>[]; readonly length: number }[] = [];
  #length = 0;

  constructor(by: readonly SortKey[], options: StageOptions) {
    this.#options = options;
    this.#keys = by.map(({ expression, isDescending }) => ({
      of: evaluator(expression, options.nowMs),
      direction: isDescending ? -1 : 1,
    }));
  }

  take(record: QueryRecord): void {
    const values = this.#keys.map(({ of }) => of(record));
    record.forgetDocument();
    const { length } = record;
    this.#held.push({ record, values, length });
    this.#length += length;
    if (this.#held.length >= 2 * this.#options.keptMax + 1000 || this.#length > 4 * rowsLengthMax) this.#cut();
  }

  end(): void {
    this.#cut();
    for (const { record } of this.#held) this.#options.next.take(record);
    this.#held = [];
    this.#options.next.end();
  }

  #cut(): void {
    this.#held.sort((a, b) => {
      for (const [index, { direction }] of this.#keys.entries()) {
        const [left = null, right = null] = [a.values[index], b.values[index]];
        const order = orderOf(left, right);
        // Missing values come last in either direction.
        if (order !== 0) return left === null || right === null ? order : order * direction;
      }
      return 0;
    });
    let count = 0;
    this.#length = 0;
    for (const { length } of this.#held) {
      if (count === this.#options.keptMax || (count > 0 && this.#length + length > rowsLengthMax)) break;
      this.#length += length;
      count += 1;
    }
    this.#held.length = count;
  }
}
