import { setImmediate as nextTurn } from "node:timers/promises";
import type { ReadMetricValues, EvaluatedMetric } from "@galatea/hosting/alarms";
import type { Clock } from "@galatea/base";
import type { MetricStore } from "@galatea/base/metrics";
import type { CloudwatchInputs } from "../../spec/gen/cloudwatch.ts";
import { parseDataQueries, type DataQuery, type MetricStat } from "./data-queries.ts";
import { parseDimensions } from "./dimensions.ts";
import { mathError, type TimeSeries } from "./metric-math.ts";
import { runComputation, MetricQueryEvaluation } from "./query-evaluation.ts";

const id = "watched";
const minuteSeconds = 60;
/**
 * Time for which a metric stays recorded in short periods after an alarm has read it. It is much longer than the ten
 * seconds between two evaluations.
 */
const refinedMs = 600_000;
/** Namespaces of the platform's own metrics. Clients choose the resolution of all other metrics with PutMetricData. */
const ownNamespace = /^(AWS\/SageMaker|\/aws\/sagemaker\/.*|Galatea\/.*)$/;

/**
 * Creates the reader of the values that alarms evaluate. It computes them as GetMetricData does, and yields to the
 * event loop. It rejects with AwsError for an expression that cannot be computed. The platform's own metrics are
 * recorded in periods of less than a minute while an alarm with such a period reads them.
 */
export function createAlarmValueReader({
  series,
  clock,
}: {
  readonly series: MetricStore;
  readonly clock: Clock;
}): ReadMetricValues {
  return async (watched, range) => {
    const queries = queriesOf(watched);
    const returned = queries.find((query) => query.isReturned);
    if (returned === undefined) throw mathError("no metric or expression is returned");
    for (const query of queries) if (query.kind === "metric") refineShort(series, query.stat, clock.epochMs());
    const evaluation = new MetricQueryEvaluation(series, clock.epochMs(), range, queries);
    const value = await runComputation(evaluation.resolve(returned.id), () => nextTurn());
    if (typeof value === "number") throw mathError(`the expression of ${returned.id} gives a number, not a series`);
    if (!Array.isArray(value)) return value as TimeSeries;
    if (value.length !== 1) throw mathError(`the expression of ${returned.id} gives ${value.length} series, not one`);
    return (value as readonly TimeSeries[])[0] as TimeSeries;
  };
}

function refineShort(series: MetricStore, { Metric, Period }: MetricStat, nowMs: number): void {
  const { Namespace: namespace = "", MetricName: metricName = "", Dimensions } = Metric;
  if (Period >= minuteSeconds || !ownNamespace.test(namespace)) return;
  series.refine({ namespace, metricName, dimensions: parseDimensions(Dimensions) }, nowMs + refinedMs);
}

function queriesOf(watched: EvaluatedMetric): readonly DataQuery[] {
  if (watched.kind === "queries")
    return parseDataQueries(watched.queries as readonly CloudwatchInputs["MetricDataQuery"][]);
  const { metric, statistic, unit, periodMs } = watched;
  const stat = {
    Metric: {
      Namespace: metric.namespace,
      MetricName: metric.metricName,
      Dimensions: metric.dimensions.map(({ name, value }) => ({ Name: name, Value: value })),
    },
    Period: periodMs / 1000,
    Stat: statistic,
    ...(unit === null ? {} : { Unit: unit as NonNullable<CloudwatchInputs["MetricStat"]["Unit"]> }),
  };
  return [{ kind: "metric", id, label: id, isReturned: true, stat }];
}
