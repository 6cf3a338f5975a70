import type { MetricName, MetricStore } from "@galatea/base/metrics";
import type { DataQuery, ExpressionQuery, MetricStat } from "./data-queries.ts";
import { parseDimensions } from "./dimensions.ts";
import {
  evaluateExpression,
  MathBudget,
  mathError,
  queryIdsIn,
  type MathValue,
  type ComputationSteps,
  type TimeSeries,
} from "./metric-math.ts";
import { parseMetricSearch } from "./metric-search.ts";
import { checkMetricPeriod, roundedStartMs, parseStatistic } from "./statistics.ts";

/** Maximum number of points in one expression's result. */
const expressionTimesMax = 100_800;
/**
 * Maximum number of values that the expressions of one request may compute. It limits the request to one or two seconds
 * of CPU time, and bounds its memory.
 */
const valuesMax = 5_000_000;

/** Maximum number of series of one search, as in CloudWatch. */
const foundMax = 500;
/** A filter that matches the metrics of all namespaces. */
const everything = { namespace: null, metricName: null, dimensions: [], recordedSinceMs: null };

interface SearchQuery {
  readonly text: string;
  readonly stat: string;
  readonly periodSeconds: number;
}

/** Returns the label that distinguishes a metric of a search. */
const labelOf = ({ metricName, dimensions }: MetricName): string =>
  [...dimensions.map(({ value }) => value), metricName].join(" ");

/** Runs all steps of a computation, each in an event loop tick of its own, and resolves with the result. */
export async function runComputation<Result>(
  steps: ComputationSteps<Result>,
  nextTick: () => Promise<void>,
): Promise<Result> {
  for (let input: unknown; ;) {
    await nextTick();
    const { done, value } = steps.next(input);
    if (done === true) return value;
    input = await value;
  }
}

/** Yields a promise and returns the promise's value. */
function* resolved<Value>(promise: Promise<Value>): ComputationSteps<Value> {
  return (yield promise) as Value;
}

/** Evaluates each query of a request once. Throws for an expression that reads itself. */
export class MetricQueryEvaluation {
  readonly #series: MetricStore;
  readonly #nowMs: number;
  readonly #range: { readonly startMs: number; readonly endMs: number };
  readonly #queries: ReadonlyMap<string, DataQuery>;
  readonly #values = new Map<string, MathValue>();
  readonly #open = new Set<string>();
  readonly #labels = new WeakMap<TimeSeries, string>();
  readonly #budget = new MathBudget(valuesMax);

  constructor(
    series: MetricStore,
    nowMs: number,
    range: { readonly startMs: number; readonly endMs: number },
    queries: readonly DataQuery[],
  ) {
    this.#series = series;
    this.#nowMs = nowMs;
    this.#range = range;
    this.#queries = new Map(queries.map((query) => [query.id, query]));
  }

  *resolve(id: string): ComputationSteps<MathValue> {
    const known = this.#values.get(id);
    if (known !== undefined) return known;
    const query = this.#queries.get(id);
    if (query === undefined) throw mathError(`there is no metric or expression with the id ${id}`);
    if (this.#open.has(id)) throw mathError(`the expressions around ${id} refer to each other in a cycle`);
    this.#open.add(id);
    const value = query.kind === "metric" ? yield* this.#metric(query.stat) : yield* this.#expression(query);
    this.#open.delete(id);
    this.#values.set(id, value);
    return value;
  }

  *#metric(stat: MetricStat): ComputationSteps<TimeSeries> {
    const periodMs = stat.Period * 1000;
    checkMetricPeriod(stat.Period);
    const statistic = parseStatistic(stat.Stat, "MetricStat.Stat");
    const query = this.#series.query(
      {
        namespace: stat.Metric.Namespace ?? "",
        metricName: stat.Metric.MetricName ?? "",
        dimensions: parseDimensions(stat.Metric.Dimensions),
      },
      {
        startMs: roundedStartMs(this.#range.startMs, periodMs, this.#nowMs),
        endMs: this.#range.endMs,
        periodMs,
        unit: stat.Unit ?? null,
      },
    );
    const points = yield* resolved(query);
    const values = new Map<number, number>();
    for (const point of points) {
      if (this.#budget.countValue()) yield;
      const value = statistic(point);
      if (value !== null && !values.has(point.startMs)) values.set(point.startMs, value);
    }
    return values;
  }

  #expression(query: ExpressionQuery): ComputationSteps<MathValue> {
    const periodMs = this.#periodMs(query);
    const startMs = roundedStartMs(this.#range.startMs, periodMs, this.#nowMs);
    const count = Math.min(expressionTimesMax, Math.ceil((this.#range.endMs - startMs) / periodMs));
    return evaluateExpression(query.expression, {
      resolve: (id) => this.#resolveKnown(id),
      metrics: (contains) => this.#metrics(contains),
      search: (text, stat, seconds) => this.#search({ text, stat, periodSeconds: seconds ?? periodMs / 1000 }),
      budget: this.#budget,
      times: Array.from({ length: count }, (_, index) => startMs + index * periodMs),
    });
  }

  *#resolveKnown(id: string): ComputationSteps<MathValue | undefined> {
    return this.#queries.has(id) ? yield* this.resolve(id) : undefined;
  }

  *#metrics(contains: string): ComputationSteps<readonly TimeSeries[]> {
    const found: TimeSeries[] = [];
    for (const [id, query] of this.#queries) {
      if (query.kind !== "metric" || !id.includes(contains)) continue;
      found.push((yield* this.resolve(id)) as TimeSeries);
    }
    return found;
  }

  *#search({ text, stat, periodSeconds }: SearchQuery): ComputationSteps<readonly TimeSeries[]> {
    const matches = parseMetricSearch(text);
    checkMetricPeriod(periodSeconds);
    parseStatistic(stat, "SEARCH");
    const names: { readonly id: string; readonly metric: MetricName }[] = [];
    const batches = this.#series.list(everything)[Symbol.asyncIterator]();
    for (;;) {
      const { done, value: batch } = yield* resolved(batches.next());
      if (done === true) break;
      for (const metric of batch.filter(matches)) names.push({ id: labelOf(metric), metric });
      if (names.length > foundMax) throw mathError(`SEARCH finds more than ${foundMax} metrics: narrow it down`);
    }
    const found: TimeSeries[] = [];
    for (const { id, metric } of names.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
      const Dimensions = metric.dimensions.map(({ name, value }) => ({ Name: name, Value: value }));
      const requested = { Namespace: metric.namespace, MetricName: metric.metricName, Dimensions };
      const series = yield* this.#metric({ Metric: requested, Period: periodSeconds, Stat: stat });
      this.#labels.set(series, id);
      found.push(series);
    }
    return found;
  }

  /** Returns the label of a series that a search found; null for any other series. */
  labelOf(series: TimeSeries): string | null {
    return this.#labels.get(series) ?? null;
  }

  /**
   * Returns an expression's own period. Without one, returns the longest period of the queries that it reads, or of all
   * metrics.
   */
  #periodMs({ expression, periodSeconds }: ExpressionQuery): number {
    if (periodSeconds !== null) return periodSeconds * 1000;
    const read = queryIdsIn(expression)
      .map((id) => this.#queries.get(id))
      .filter((each) => each !== undefined);
    const all = read.length > 0 ? read : [...this.#queries.values()];
    const seconds = all.map((each) => (each.kind === "metric" ? each.stat.Period : (each.periodSeconds ?? 0)));
    return Math.max(60, ...seconds) * 1000;
  }
}
