/** The value of an expression; null: the event lacks the field, or the value cannot be computed. */
export type QueryValue = string | number | boolean | null;

export type QueryComparison = "=" | "!=" | "<" | "<=" | ">" | ">=";
export type ArithmeticOperator = "+" | "-" | "*" | "/" | "%" | "^";

/** An expression of a query. Offsets in the query's text locate errors. */
export type QueryExpression =
  | { readonly is: "value"; readonly value: string | number }
  | { readonly is: "field"; readonly name: string }
  | { readonly is: "not"; readonly of: QueryExpression }
  | { readonly is: "and" | "or"; readonly of: readonly QueryExpression[] }
  | {
      readonly is: "compare";
      readonly sign: QueryComparison;
      readonly left: QueryExpression;
      readonly right: QueryExpression;
    }
  | {
      readonly is: "compute";
      readonly sign: ArithmeticOperator;
      readonly left: QueryExpression;
      readonly right: QueryExpression;
    }
  | { readonly is: "in"; readonly of: QueryExpression; readonly among: readonly QueryExpression[] }
  /** True if a text contains another. */
  | { readonly is: "contains"; readonly of: QueryExpression; readonly part: string }
  | { readonly is: "like"; readonly of: QueryExpression; readonly expression: string }
  | { readonly is: "call"; readonly name: string; readonly of: readonly QueryExpression[] }
  /** A period, for `bin` and similar functions. */
  | { readonly is: "duration"; readonly ms: number };

/** An expression with the name of its result column: its alias, or its own text. */
export interface NamedExpression {
  readonly name: string;
  readonly expression: QueryExpression;
}

export const aggregateNames = [
  "count",
  "count_distinct",
  "sum",
  "avg",
  "min",
  "max",
  "pct",
  "median",
  "stddev",
  "earliest",
  "latest",
  "sortsfirst",
  "sortslast",
] as const;

export type AggregateName = (typeof aggregateNames)[number];

export interface Aggregate {
  /** Name of the result column. */
  readonly name: string;
  readonly of: AggregateName;
  /** Null: `count(*)`. */
  readonly expression: QueryExpression | null;
  /** Only for `pct`. */
  readonly percent: number;
}

export interface SortKey {
  readonly expression: QueryExpression;
  readonly isDescending: boolean;
}

export type QueryCommand =
  | { readonly do: "fields" | "display"; readonly of: readonly NamedExpression[] }
  | { readonly do: "filter"; readonly condition: QueryExpression }
  /** `parse` with a text in which each `*` is a field, or with a regular expression whose groups are fields. */
  | {
      readonly do: "parse";
      readonly of: QueryExpression;
      readonly pattern: { readonly kind: "glob" | "expression"; readonly text: string };
      readonly names: readonly string[];
    }
  | { readonly do: "stats"; readonly aggregates: readonly Aggregate[]; readonly by: readonly NamedExpression[] }
  | { readonly do: "sort"; readonly by: readonly SortKey[] }
  | { readonly do: "limit"; readonly count: number }
  | { readonly do: "dedup"; readonly by: readonly QueryExpression[] };

/** A syntax error in a query, with its offset. */
export class QueryError extends Error {
  readonly startOffset: number;
  readonly endOffset: number;

  constructor(message: string, startOffset: number, endOffset: number) {
    super(message);
    this.startOffset = startOffset;
    this.endOffset = endOffset;
  }
}
