import { unreachable } from "@galatea/base";
import { createAggregation, QueryLimitExceeded, type Aggregation } from "./aggregation.ts";
import { compileExpression, isTruthy, sortOrderOf, type CompiledExpression } from "./evaluate.ts";
import { queryRowsMax } from "./parse-query.ts";
import { createFieldParser } from "./parsed-fields.ts";
import type { NamedExpression, QueryCommand, SortKey } from "./query.ts";
import { QueryRecord } from "./query-record.ts";

/**
 * One running command of a query. It passes each record to the next stage at once, or passes all records at the end.
 */
export interface QueryStage {
  add(record: QueryRecord): void;
  end(): void;
}

type Next = QueryStage;

const groupsMax = 10_000;
/** Maximum length of the texts in a query's rows; further rows are dropped. */
export const queryResultLengthMax = 8 * 1024 * 1024;

export interface QueryStageOptions {
  readonly next: Next;
  readonly nowMs: number;
  /** Maximum number of rows that a sort keeps. */
  readonly sortedRowsMax: number;
}

export function createQueryStage(
  command: QueryCommand,
  { next, nowMs, sortedRowsMax: keptMax }: QueryStageOptions,
): QueryStage {
  switch (command.do) {
    case "fields":
    case "display":
      return naming(command.of, nowMs, next);
    case "filter": {
      const condition = compileExpression(command.condition, nowMs);
      return passing((record) => {
        if (isTruthy(condition(record))) next.add(record);
      }, next);
    }
    case "parse": {
      const of = compileExpression(command.of, nowMs);
      const parse = createFieldParser(command);
      return passing((record) => {
        const found = parse(of(record));
        for (const [index, name] of command.names.entries()) record.set(name, found?.[index] ?? null);
        next.add(record);
      }, next);
    }
    case "stats":
      return new Grouping(command, nowMs, next);
    case "sort":
      return new Sorting(command.by, { next, nowMs, sortedRowsMax: keptMax });
    case "limit": {
      let left = command.count;
      return passing((record) => {
        if (left > 0) next.add(record);
        left -= 1;
      }, next);
    }
    case "dedup":
      return deduplicating(
        command.by.map((each) => compileExpression(each, nowMs)),
        next,
      );
    default:
      return unreachable(command);
  }
}

function passing(take: (record: QueryRecord) => void, next: Next): QueryStage {
  return { add: take, end: () => next.end() };
}

/** Adds computed values by name. */
function naming(of: readonly NamedExpression[], nowMs: number, next: Next): QueryStage {
  const computed = of
    .filter(({ name, expression }) => expression.is !== "field" || expression.name !== name)
    .map(({ name, expression }) => ({ name, of: compileExpression(expression, nowMs) }));
  return passing((record) => {
    for (const { name, of: value } of computed) record.set(name, value(record));
    next.add(record);
  }, next);
}

/** Keeps the first record of each combination of values. */
function deduplicating(by: readonly CompiledExpression[], next: Next): QueryStage {
  const seen = new Set<string>();
  return passing((record) => {
    const key = JSON.stringify(by.map((each) => each(record)));
    if (seen.has(key) || seen.size >= queryRowsMax) return;
    seen.add(key);
    next.add(record);
  }, next);
}

class Grouping implements QueryStage {
  readonly #command: Extract<QueryCommand, { readonly do: "stats" }>;
  readonly #by: readonly CompiledExpression[];
  readonly #of: readonly (CompiledExpression | null)[];
  readonly #groups = new Map<string, { readonly row: QueryRecord; readonly aggregations: readonly Aggregation[] }>();
  readonly #next: Next;

  constructor(command: Extract<QueryCommand, { readonly do: "stats" }>, nowMs: number, next: Next) {
    this.#command = command;
    this.#by = command.by.map(({ expression }) => compileExpression(expression, nowMs));
    this.#of = command.aggregates.map(({ expression }) =>
      expression === null ? null : compileExpression(expression, nowMs),
    );
    this.#next = next;
  }

  add(record: QueryRecord): void {
    const values = this.#by.map((each) => each(record));
    const key = JSON.stringify(values);
    let group = this.#groups.get(key);
    if (group === undefined) {
      if (this.#groups.size >= groupsMax) throw new QueryLimitExceeded(`stats supports at most ${groupsMax} groups`);
      group = { row: new QueryRecord(null), aggregations: this.#command.aggregates.map(createAggregation) };
      for (const [index, { name }] of this.#command.by.entries()) group.row.set(name, values[index] ?? null);
      this.#groups.set(key, group);
    }
    for (const [index, aggregation] of group.aggregations.entries()) {
      aggregation.add(this.#of[index]?.(record) ?? null, record.timestampMs);
    }
  }

  end(): void {
    // A query without `by` returns one row even if no event matches.
    if (this.#by.length === 0 && this.#groups.size === 0) {
      const aggregations = this.#command.aggregates.map(createAggregation);
      this.#groups.set("", { row: new QueryRecord(null), aggregations });
    }
    for (const { row, aggregations } of this.#groups.values()) {
      for (const [index, aggregation] of aggregations.entries()) {
        row.set((this.#command.aggregates[index] as { name: string }).name, aggregation.result());
      }
      this.#next.add(row);
    }
    this.#groups.clear();
    this.#next.end();
  }
}

/** Sorts any number of rows and keeps the first ones, in bounded memory. */
class Sorting implements QueryStage {
  readonly #keys: readonly { readonly of: CompiledExpression; readonly direction: number }[];
  readonly #options: QueryStageOptions;
  #held: {
    readonly record: QueryRecord;
    readonly values: ReturnType<CompiledExpression>[];
    readonly length: number;
  }[] = [];
  #length = 0;

  constructor(by: readonly SortKey[], options: QueryStageOptions) {
    this.#options = options;
    this.#keys = by.map(({ expression, isDescending }) => ({
      of: compileExpression(expression, options.nowMs),
      direction: isDescending ? -1 : 1,
    }));
  }

  add(record: QueryRecord): void {
    const values = this.#keys.map(({ of }) => of(record));
    record.releaseDocument();
    const { length } = record;
    this.#held.push({ record, values, length });
    this.#length += length;
    if (this.#held.length >= 2 * this.#options.sortedRowsMax + 1000 || this.#length > 4 * queryResultLengthMax)
      this.#cut();
  }

  end(): void {
    this.#cut();
    for (const { record } of this.#held) this.#options.next.add(record);
    this.#held = [];
    this.#options.next.end();
  }

  #cut(): void {
    this.#held.sort((a, b) => {
      for (const [index, { direction }] of this.#keys.entries()) {
        const [left = null, right = null] = [a.values[index], b.values[index]];
        const order = sortOrderOf(left, right);
        // Missing values come last in either direction.
        if (order !== 0) return left === null || right === null ? order : order * direction;
      }
      return 0;
    });
    let count = 0;
    this.#length = 0;
    for (const { length } of this.#held) {
      if (count === this.#options.sortedRowsMax || (count > 0 && this.#length + length > queryResultLengthMax)) break;
      this.#length += length;
      count += 1;
    }
    this.#held.length = count;
  }
}
