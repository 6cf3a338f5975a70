import { AwsError, type Clock } from "@galatea/base";
import type { Datapoint, MetricName, MetricStore, SeriesFilter } from "@galatea/base/metrics";
import cloudwatch from "../../spec/gen/cloudwatch.json" with { type: "json" };
import type { CloudwatchInputs, CloudwatchOperations } from "../../spec/gen/cloudwatch.ts";
import { asServiceModel } from "../../spec/index.ts";
import {
  firstInOrder,
  type CallContext,
  type ModelledService,
  type OperationRows,
  pageToken,
  positionOfToken,
} from "../../wire/index.ts";
import { alarmOperations, type AlarmOperationsDependencies } from "./alarm-operations.ts";
import { dashboardOperations, type DashboardStore } from "./dashboards.ts";
import { parseDimensions } from "./dimensions.ts";
import { getMetricData } from "./get-metric-data.ts";
import { invalidNextTokenValue } from "./next-tokens.ts";
import { putMetricData } from "./put-metric-data.ts";
import { checkMetricPeriod, checkTimeRange, isSimpleStatistic, roundedStartMs, parseStatistic } from "./statistics.ts";

export interface CloudWatchDependencies extends AlarmOperationsDependencies {
  readonly series: MetricStore;
  readonly dashboards: DashboardStore;
  readonly clock: Clock;
}

type SeriesDependencies = Pick<CloudWatchDependencies, "series" | "clock">;

const datapointsMax = 1440;
const metricsPerPage = 500;
const hourMs = 3_600_000;
/** Age of the last data point after which a metric is not listed. */
const listedMs = 14 * 24 * hourMs;

/**
 * CloudWatch: alarms, dashboards, and metrics from the platform's own minute series. An exact set of dimensions
 * identifies a metric.
 */
export function cloudwatchService(dependencies: CloudWatchDependencies) {
  const { series, clock } = dependencies;
  const operations: OperationRows<CloudwatchOperations> = {
    GetMetricStatistics: {
      handle: (input) => getMetricStatistics(series, clock.epochMs(), input),
    },
    GetMetricData: {
      handle: (input, { nextTick }) => getMetricData({ series, clock, nextTick }, input),
    },
    PutMetricData: {
      // IAM has no ARNs for metrics: its policies restrict the namespace by a condition. This invented ARN lets hosting
      // check the namespace.
      resource: ({ Namespace: namespace }, { region, accountId }) =>
        `arn:aws:cloudwatch:${region}:${accountId}:namespace/${namespace}`,
      handle: (input, { nextTick }) => putMetricData({ series, clock, nextTick }, input),
    },
    ListMetrics: {
      handle: (input, context) => listMetrics({ series, clock }, input, context),
    },
    ...alarmOperations(dependencies),
    ...dashboardOperations(dependencies.dashboards, clock),
  };
  return {
    kind: "modelled",
    model: asServiceModel(cloudwatch),
    scope: "monitoring",
    iamPrefix: "cloudwatch",
    validationCodes: { json: "ValidationException", query: "ValidationError" },
    operations,
  } as const satisfies ModelledService;
}

async function getMetricStatistics(
  series: MetricStore,
  nowMs: number,
  input: CloudwatchInputs["GetMetricStatisticsInput"],
) {
  const statistics = input.Statistics ?? [];
  const extended = input.ExtendedStatistics ?? [];
  if (statistics.length === 0 && extended.length === 0) {
    const text = "At least one of the parameters Statistics and ExtendedStatistics must be specified.";
    throw new AwsError("InvalidParameterCombination", text);
  }
  for (const name of statistics) {
    if (!isSimpleStatistic(name))
      throw new AwsError("InvalidParameterValue", `The value ${name} for parameter Statistics is invalid.`);
  }
  const percentiles = extended.map((name) => [name, parseStatistic(name, "ExtendedStatistics")] as const);
  const [endMs, period] = [input.EndTime.getTime(), input.Period];
  checkMetricPeriod(period);
  checkTimeRange(input.StartTime.getTime(), endMs);
  const startMs = roundedStartMs(input.StartTime.getTime(), period * 1000, nowMs);
  checkDatapointCount(startMs, endMs, period);
  const points = await series.query(
    { namespace: input.Namespace, metricName: input.MetricName, dimensions: parseDimensions(input.Dimensions) },
    { startMs, endMs, periodMs: period * 1000, unit: input.Unit ?? null },
  );
  return { Label: input.MetricName, Datapoints: points.map((point) => printDatapoint(point, statistics, percentiles)) };
}

function printDatapoint(
  point: Datapoint,
  statistics: readonly string[],
  percentiles: readonly (readonly [string, (point: Datapoint) => number | null])[],
) {
  const values = percentiles.flatMap(([name, statistic]): (readonly [string, number])[] => {
    const value = statistic(point);
    return value === null ? [] : [[name, value]];
  });
  return {
    Timestamp: new Date(point.startMs),
    ...Object.fromEntries(statistics.map((name) => [name, parseStatistic(name, "Statistics")(point)])),
    Unit: point.unit,
    ExtendedStatistics: values.length === 0 ? undefined : Object.fromEntries(values),
  };
}

function checkDatapointCount(startMs: number, endMs: number, period: number): void {
  const count = Math.ceil((endMs - startMs) / 1000 / period);
  if (count <= datapointsMax) return;
  throw new AwsError(
    "InvalidParameterCombination",
    `You have requested up to ${count.toLocaleString("en-US")} datapoints, which exceeds the limit of 1,440. ` +
      "You may reduce the datapoints requested by increasing Period, or decreasing the time range.",
  );
}

interface ListedMetric {
  readonly id: string;
  readonly name: MetricName;
}

async function listMetrics(
  { series, clock }: SeriesDependencies,
  input: CloudwatchInputs["ListMetricsInput"],
  { nextTick }: CallContext,
) {
  const filter: SeriesFilter = {
    namespace: input.Namespace ?? null,
    metricName: input.MetricName ?? null,
    dimensions: (input.Dimensions ?? []).map(({ Name, Value }) => ({ name: Name, value: Value ?? null })),
    recordedSinceMs: clock.epochMs() - (input.RecentlyActive === "PT3H" ? 3 * hourMs : listedMs),
  };
  const listing = { operation: "ListMetrics", input };
  const { NextToken: token } = input;
  const after = token === undefined ? null : positionOfToken(listing, token, invalidNextTokenValue);
  const entryOf = (name: MetricName): ListedMetric | null => {
    const id = metricId(name);
    return after === null || id > after ? { id, name } : null;
  };
  const order = (a: ListedMetric, b: ListedMetric) => (a.id < b.id ? -1 : Number(a.id > b.id));
  // Selects one metric more than a page, to know whether another page follows.
  const first = await firstInOrder(series.list(filter), { entryOf, order, countMax: metricsPerPage + 1 }, nextTick);
  const page = first.slice(0, metricsPerPage);
  const last = page.at(-1)?.id;
  return {
    Metrics: page.map(({ name }) => printMetric(name)),
    NextToken: last !== undefined && first.length > page.length ? pageToken(listing, last) : undefined,
  };
}

function metricId({ namespace, metricName, dimensions }: MetricName): string {
  return JSON.stringify([namespace, metricName, dimensions.map(({ name, value }) => [name, value])]);
}

function printMetric({ namespace, metricName, dimensions }: MetricName) {
  return {
    Namespace: namespace,
    MetricName: metricName,
    Dimensions: dimensions.map(({ name, value }) => ({ Name: name, Value: value })),
  };
}
