import type { GetMetricDataInput, MetricDataQuery, MetricStat } from "@aws-sdk/client-cloudwatch";
import { AwsError, type Clock } from "../../../base/index.ts";
import type { MinuteSeries } from "../../../metrics/index.ts";
import { evaluateExpression, mathError, namesIn, type MathValue, type TimeSeries } from "./metric-math.ts";
import { checkPeriod, checkRange, roundedStartMs, statisticOf } from "./statistics.ts";

const queriesMax = 500;
const datapointsMaxDefault = 100_800;
/** Times that an expression may fill. */
const expressionTimesMax = 100_800;

interface DataResult {
  readonly Id: string;
  readonly Label: string;
  readonly Timestamps: readonly Date[];
  readonly Values: readonly number[];
  readonly StatusCode: "Complete";
}

export function getMetricData(series: MinuteSeries, clock: Clock, input: GetMetricDataInput) {
  const queries = input.MetricDataQueries ?? [];
  checkQueries(queries);
  const range = { startMs: (input.StartTime as Date).getTime(), endMs: (input.EndTime as Date).getTime() };
  checkRange(range.startMs, range.endMs);
  const evaluation = new Evaluation(series, clock.epochMs(), range, queries);
  const isDescending = input.ScanBy !== "TimestampAscending";
  const results = queries
    .filter((query) => query.ReturnData !== false)
    .flatMap((query) => printResult(query, evaluation.resolve(query.Id as string), isDescending));
  return pageOf(results, input);
}

/** Computes each query once; an expression that reads itself is an error. */
class Evaluation {
  readonly #series: MinuteSeries;
  readonly #nowMs: number;
  readonly #range: { readonly startMs: number; readonly endMs: number };
  readonly #queries: ReadonlyMap<string, MetricDataQuery>;
  readonly #values = new Map<string, MathValue>();
  readonly #open = new Set<string>();

  constructor(
    series: MinuteSeries,
    nowMs: number,
    range: { readonly startMs: number; readonly endMs: number },
    queries: readonly MetricDataQuery[],
  ) {
    this.#series = series;
    this.#nowMs = nowMs;
    this.#range = range;
    this.#queries = new Map(queries.map((query) => [query.Id as string, query]));
  }

  resolve(id: string): MathValue {
    const known = this.#values.get(id);
    if (known !== undefined) return known;
    const query = this.#queries.get(id);
    if (query === undefined) throw mathError(`there is no metric or expression with the id ${id}`);
    if (this.#open.has(id)) throw mathError(`the expressions around ${id} read each other in a circle`);
    this.#open.add(id);
    const value = query.MetricStat === undefined ? this.#expression(query) : this.#metric(query.MetricStat);
    this.#open.delete(id);
    this.#values.set(id, value);
    return value;
  }

  #metric(stat: MetricStat): TimeSeries {
    const periodMs = (stat.Period as number) * 1000;
    checkPeriod(stat.Period as number);
    const statistic = statisticOf(stat.Stat as string, "MetricStat.Stat");
    const points = this.#series.query(
      {
        namespace: stat.Metric?.Namespace ?? "",
        metricName: stat.Metric?.MetricName ?? "",
        dimensions: (stat.Metric?.Dimensions ?? []).map(({ Name = "", Value = "" }) => ({ name: Name, value: Value })),
      },
      {
        startMs: roundedStartMs(this.#range.startMs, periodMs, this.#nowMs),
        endMs: this.#range.endMs,
        periodMs,
        unit: stat.Unit ?? null,
      },
    );
    const values = new Map<number, number>();
    for (const point of points) {
      const value = statistic(point);
      if (value !== null && !values.has(point.startMs)) values.set(point.startMs, value);
    }
    return values;
  }

  #expression(query: MetricDataQuery): MathValue {
    const expression = query.Expression ?? "";
    const periodMs = this.#periodMs(query);
    const startMs = roundedStartMs(this.#range.startMs, periodMs, this.#nowMs);
    const count = Math.min(expressionTimesMax, Math.ceil((this.#range.endMs - startMs) / periodMs));
    return evaluateExpression(expression, {
      resolve: (id) => (this.#queries.has(id) ? this.resolve(id) : undefined),
      metrics: (contains) =>
        [...this.#queries]
          .filter(([id, each]) => each.MetricStat !== undefined && id.includes(contains))
          .map(([id]) => this.resolve(id) as TimeSeries),
      times: Array.from({ length: count }, (_, index) => startMs + index * periodMs),
    });
  }

  /** An expression's own, else the longest of what it reads, else of all metrics. */
  #periodMs(query: MetricDataQuery): number {
    if (query.Period !== undefined) return query.Period * 1000;
    const read = namesIn(query.Expression ?? "")
      .map((id) => this.#queries.get(id))
      .filter((each) => each !== undefined);
    const all = read.length > 0 ? read : [...this.#queries.values()];
    return Math.max(60, ...all.map((each) => each.MetricStat?.Period ?? each.Period ?? 0)) * 1000;
  }
}

function checkQueries(queries: readonly MetricDataQuery[]): void {
  if (queries.length > queriesMax) {
    throw new AwsError(
      "ValidationError",
      `The collection MetricDataQueries must not have a size greater than ${queriesMax}.`,
    );
  }
  const ids = new Set<string>();
  for (const { Id = "", MetricStat: stat, Expression: expression } of queries) {
    if (!/^[a-z]\w*$/.test(Id)) throw new AwsError("ValidationError", `The value ${Id} for parameter Id is invalid.`);
    if (ids.has(Id))
      throw new AwsError("ValidationError", `The values for parameter id in MetricDataQueries are not unique.`);
    ids.add(Id);
    if ((stat === undefined) === (expression === undefined)) {
      const text = `Exactly one of the parameters MetricStat and Expression must be specified for the query ${Id}.`;
      throw new AwsError("ValidationError", text);
    }
  }
}

function printResult(query: MetricDataQuery, value: MathValue, isDescending: boolean): readonly DataResult[] {
  const id = query.Id as string;
  const label = query.Label ?? query.MetricStat?.Metric?.MetricName ?? id;
  if (typeof value === "number") throw mathError(`the expression of ${id} gives a number, not a series`);
  const all = Array.isArray(value) ? (value as readonly TimeSeries[]) : [value as TimeSeries];
  return all.map((series) => {
    const times = [...series.keys()].sort((a, b) => (isDescending ? b - a : a - b));
    return {
      Id: id,
      Label: label,
      Timestamps: times.map((time) => new Date(time)),
      Values: times.map((time) => series.get(time) as number),
      StatusCode: "Complete",
    };
  });
}

/** Pages are cut by datapoints over all results; the token is the number of datapoints before the page. */
function pageOf(results: readonly DataResult[], input: GetMetricDataInput) {
  const skipCount = input.NextToken === undefined ? 0 : Number(input.NextToken);
  if (!Number.isInteger(skipCount) || skipCount < 0) {
    throw new AwsError("InvalidNextToken", `The value ${input.NextToken} for parameter NextToken is invalid.`);
  }
  const endCount = skipCount + (input.MaxDatapoints ?? datapointsMaxDefault);
  let before = 0;
  const page = results.map((result) => {
    const [from, to] = [Math.max(0, skipCount - before), Math.max(0, endCount - before)];
    before += result.Values.length;
    const isCut = to < result.Values.length;
    return {
      ...result,
      Timestamps: result.Timestamps.slice(from, to),
      Values: result.Values.slice(from, to),
      StatusCode: isCut ? "PartialData" : "Complete",
    };
  });
  return { MetricDataResults: page, Messages: [], NextToken: before > endCount ? String(endCount) : undefined };
}
