import type { Clock } from "@galatea/base";
import type { MetricStore } from "@galatea/base/metrics";
import type { CloudwatchInputs } from "../../spec/gen/cloudwatch.ts";
import { pageToken, positionOfToken } from "../../wire/index.ts";
import { parseDataQueries, type DataQuery } from "./data-queries.ts";
import { mathError, type MathValue, type TimeSeries } from "./metric-math.ts";
import { invalidNextToken } from "./next-tokens.ts";
import { runComputation, MetricQueryEvaluation } from "./query-evaluation.ts";
import { checkTimeRange } from "./statistics.ts";

type GetMetricDataInput = CloudwatchInputs["GetMetricDataInput"];

const datapointsMaxDefault = 100_800;

interface DataResult {
  readonly Id: string;
  readonly Label: string;
  readonly Timestamps: readonly Date[];
  readonly Values: readonly number[];
  readonly StatusCode: "Complete";
}

export interface GetMetricDataOptions {
  readonly series: MetricStore;
  readonly clock: Clock;
  /** Resolves in the call's next tick of the event loop. */
  readonly nextTick: () => Promise<void>;
}

/** Computes the data in steps of less than a millisecond, and yields to the event loop between two steps. */
export async function getMetricData(options: GetMetricDataOptions, input: GetMetricDataInput) {
  const { series, clock, nextTick } = options;
  const queries = parseDataQueries(input.MetricDataQueries);
  const range = { startMs: input.StartTime.getTime(), endMs: input.EndTime.getTime() };
  checkTimeRange(range.startMs, range.endMs);
  const evaluation = new MetricQueryEvaluation(series, clock.epochMs(), range, queries);
  const isDescending = input.ScanBy !== "TimestampAscending";
  const results: DataResult[] = [];
  for (const query of queries) {
    if (!query.isReturned) continue;
    const value = await runComputation(evaluation.resolve(query.id), nextTick);
    results.push(...printResult(query, value, { isDescending, labelOf: (series) => evaluation.labelOf(series) }));
  }
  return pageOf(results, input);
}

interface Printing {
  readonly isDescending: boolean;
  /** Returns the label of a series that a search found; null for a series with its query's label. */
  readonly labelOf: (series: TimeSeries) => string | null;
}

function printResult(
  { id, label }: DataQuery,
  value: MathValue,
  { isDescending, labelOf }: Printing,
): readonly DataResult[] {
  if (typeof value === "number") throw mathError(`the expression of ${id} gives a number, not a series`);
  const all = Array.isArray(value) ? (value as readonly TimeSeries[]) : [value as TimeSeries];
  return all.map((series) => {
    const times = [...series.keys()].sort((a, b) => (isDescending ? b - a : a - b));
    return {
      Id: id,
      Label: labelOf(series) ?? label,
      Timestamps: times.map((time) => new Date(time)),
      Values: times.map((time) => series.get(time) as number),
      StatusCode: "Complete",
    };
  });
}

/**
 * Splits the results into pages by the total number of data points. The token is the number of data points on earlier
 * pages.
 */
function pageOf(results: readonly DataResult[], input: GetMetricDataInput) {
  const listing = { operation: "GetMetricData", input };
  const { NextToken: token } = input;
  const skipCount = token === undefined ? 0 : Number(positionOfToken(listing, token, invalidNextToken));
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
  return {
    MetricDataResults: page,
    Messages: [],
    NextToken: before > endCount ? pageToken(listing, String(endCount)) : undefined,
  };
}
