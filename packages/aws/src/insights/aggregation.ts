import { unreachable } from "@galatea/base";
import { compareQueryValues, sortOrderOf } from "./evaluate.ts";
import { toQueryNumber, toQueryText } from "./functions.ts";
import type { Aggregate, QueryValue } from "./query.ts";
import { PercentileEstimator } from "./percentiles.ts";

/** The state of an aggregation over the values so far. */
export interface Aggregation {
  add(value: QueryValue, timestampMs: number): void;
  result(): QueryValue;
}

/** An error for a query that exceeds a limit; the message names the limit. */
export class QueryLimitExceeded extends Error {}

/** Maximum number of distinct values of one group that are counted. */
const distinctMax = 100_000;

export function createAggregation({ of, expression, percent }: Aggregate): Aggregation {
  switch (of) {
    case "count":
      return new Count(expression === null);
    case "count_distinct":
      return new CountDistinct();
    case "sum":
    case "avg":
    case "stddev":
      return new Moments(of);
    case "min":
      return new Extreme(-1, false);
    case "max":
      return new Extreme(1, false);
    case "sortsfirst":
      return new Extreme(-1, true);
    case "sortslast":
      return new Extreme(1, true);
    case "pct":
    case "median":
      return new Percentile(percent);
    case "earliest":
      return new AtTime(-1);
    case "latest":
      return new AtTime(1);
    default:
      return unreachable(of);
  }
}

class Count implements Aggregation {
  readonly #countsAll: boolean;
  #count = 0;

  constructor(countsAll: boolean) {
    this.#countsAll = countsAll;
  }

  add(value: QueryValue): void {
    if (this.#countsAll || value !== null) this.#count += 1;
  }

  result(): QueryValue {
    return this.#count;
  }
}

class CountDistinct implements Aggregation {
  readonly #seen = new Set<string>();

  add(value: QueryValue): void {
    if (value === null) return;
    this.#seen.add(toQueryText(value));
    if (this.#seen.size > distinctMax)
      throw new QueryLimitExceeded(`count_distinct supports at most ${distinctMax} distinct values per group`);
  }

  result(): QueryValue {
    return this.#seen.size;
  }
}

/** Sum, mean and standard deviation. Welford's algorithm keeps the deviation of large, similar values accurate. */
class Moments implements Aggregation {
  readonly #of: "sum" | "avg" | "stddev";
  #count = 0;
  #sum = 0;
  #mean = 0;
  #squares = 0;

  constructor(of: "sum" | "avg" | "stddev") {
    this.#of = of;
  }

  add(input: QueryValue): void {
    const value = toQueryNumber(input);
    if (value === null) return;
    this.#count += 1;
    this.#sum += value;
    const before = value - this.#mean;
    this.#mean += before / this.#count;
    this.#squares += before * (value - this.#mean);
  }

  result(): QueryValue {
    if (this.#count === 0) return null;
    if (this.#of === "sum") return this.#sum;
    return this.#of === "avg" ? this.#mean : Math.sqrt(this.#squares / this.#count);
  }
}

/** The smallest or largest number; for other values, the first or last one in order. */
class Extreme implements Aggregation {
  readonly #direction: number;
  readonly #acceptsText: boolean;
  #best: QueryValue = null;

  constructor(direction: number, takesTexts: boolean) {
    this.#direction = direction;
    this.#acceptsText = takesTexts;
  }

  add(input: QueryValue): void {
    const value = this.#acceptsText ? input : toQueryNumber(input);
    if (value === null) return;
    if (this.#best === null || sortOrderOf(value, this.#best) * this.#direction > 0) this.#best = value;
  }

  result(): QueryValue {
    return this.#best;
  }
}

class Percentile implements Aggregation {
  readonly #percent: number;
  readonly #values = new PercentileEstimator();

  constructor(percent: number) {
    this.#percent = percent;
  }

  add(input: QueryValue): void {
    const value = toQueryNumber(input);
    if (value !== null) this.#values.add(value);
  }

  result(): QueryValue {
    return this.#values.percentile(this.#percent);
  }
}

class AtTime implements Aggregation {
  readonly #direction: number;
  #atMs: number | null = null;
  #value: QueryValue = null;

  constructor(direction: number) {
    this.#direction = direction;
  }

  add(value: QueryValue, timestampMs: number): void {
    if (value === null) return;
    if (this.#atMs !== null && compareQueryValues(timestampMs * this.#direction, "<=", this.#atMs * this.#direction))
      return;
    this.#atMs = timestampMs;
    this.#value = value;
  }

  result(): QueryValue {
    return this.#value;
  }
}
