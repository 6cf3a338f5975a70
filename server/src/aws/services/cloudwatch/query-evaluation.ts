import type { MinuteSeries } from "../../../metrics/index.ts";
import type { DataQuery, ExpressionQuery, MetricStat } from "./data-queries.ts";
import { dimensionsOf } from "./dimensions.ts";
import {
  evaluateExpression,
  MathBudget,
  mathError,
  namesIn,
  type MathValue,
  type Steps,
  type TimeSeries,
} from "./metric-math.ts";
import { checkPeriod, roundedStartMs, statisticOf } from "./statistics.ts";

/** Times that an expression may fill. */
const expressionTimesMax = 100_800;
/** Values that the expressions of one request may compute: a second or two of one processor, and bounded memory. */
const valuesMax = 5_000_000;

/** Runs the steps to their end, each in a turn of its own. */
export async function stepsInTurns<Result>(steps: Steps<Result>, turn: () => Promise<void>): Promise<Result> {
  for (;;) {
    await turn();
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Computes each query once; an expression that reads itself is an error. */
export class QueryEvaluation {
  readonly #series: MinuteSeries;
  readonly #nowMs: number;
  readonly #range: { readonly startMs: number; readonly endMs: number };
  readonly #queries: ReadonlyMap<string, DataQuery>;
  readonly #values = new Map<string, MathValue>();
  readonly #open = new Set<string>();
  readonly #budget = new MathBudget(valuesMax);

  constructor(
    series: MinuteSeries,
    nowMs: number,
    range: { readonly startMs: number; readonly endMs: number },
    queries: readonly DataQuery[],
  ) {
    this.#series = series;
    this.#nowMs = nowMs;
    this.#range = range;
    this.#queries = new Map(queries.map((query) => [query.id, query]));
  }

  *resolve(id: string): Steps<MathValue> {
    const known = this.#values.get(id);
    if (known !== undefined) return known;
    const query = this.#queries.get(id);
    if (query === undefined) throw mathError(`there is no metric or expression with the id ${id}`);
    if (this.#open.has(id)) throw mathError(`the expressions around ${id} read each other in a circle`);
    this.#open.add(id);
    const value = query.kind === "metric" ? yield* this.#metric(query.stat) : yield* this.#expression(query);
    this.#open.delete(id);
    this.#values.set(id, value);
    return value;
  }

  *#metric(stat: MetricStat): Steps<TimeSeries> {
    const periodMs = stat.Period * 1000;
    checkPeriod(stat.Period);
    const statistic = statisticOf(stat.Stat, "MetricStat.Stat");
    const points = this.#series.query(
      {
        namespace: stat.Metric.Namespace ?? "",
        metricName: stat.Metric.MetricName ?? "",
        dimensions: dimensionsOf(stat.Metric.Dimensions),
      },
      {
        startMs: roundedStartMs(this.#range.startMs, periodMs, this.#nowMs),
        endMs: this.#range.endMs,
        periodMs,
        unit: stat.Unit ?? null,
      },
    );
    const values = new Map<number, number>();
    yield;
    for (const point of points) {
      if (this.#budget.spend()) yield;
      const value = statistic(point);
      if (value !== null && !values.has(point.startMs)) values.set(point.startMs, value);
    }
    return values;
  }

  #expression(query: ExpressionQuery): Steps<MathValue> {
    const periodMs = this.#periodMs(query);
    const startMs = roundedStartMs(this.#range.startMs, periodMs, this.#nowMs);
    const count = Math.min(expressionTimesMax, Math.ceil((this.#range.endMs - startMs) / periodMs));
    return evaluateExpression(query.expression, {
      resolve: (id) => this.#resolveKnown(id),
      metrics: (contains) => this.#metrics(contains),
      budget: this.#budget,
      times: Array.from({ length: count }, (_, index) => startMs + index * periodMs),
    });
  }

  *#resolveKnown(id: string): Steps<MathValue | undefined> {
    return this.#queries.has(id) ? yield* this.resolve(id) : undefined;
  }

  *#metrics(contains: string): Steps<readonly TimeSeries[]> {
    const found: TimeSeries[] = [];
    for (const [id, query] of this.#queries) {
      if (query.kind !== "metric" || !id.includes(contains)) continue;
      found.push((yield* this.resolve(id)) as TimeSeries);
    }
    return found;
  }

  /** An expression's own, else the longest of what it reads, else of all metrics. */
  #periodMs({ expression, periodSeconds }: ExpressionQuery): number {
    if (periodSeconds !== null) return periodSeconds * 1000;
    const read = namesIn(expression)
      .map((id) => this.#queries.get(id))
      .filter((each) => each !== undefined);
    const all = read.length > 0 ? read : [...this.#queries.values()];
    const seconds = all.map((each) => (each.kind === "metric" ? each.stat.Period : (each.periodSeconds ?? 0)));
    return Math.max(60, ...seconds) * 1000;
  }
}
