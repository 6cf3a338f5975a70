import { AwsError, type Clock } from "../../../base/index.ts";
import type { MinuteSeries, SampleOptions, SeriesKey } from "../../../metrics/index.ts";
import type { CloudwatchInputs } from "../../spec/gen/cloudwatch.ts";
import { dimensionsOf } from "./dimensions.ts";

type MetricDatum = CloudwatchInputs["MetricDatum"];

const hourMs = 3_600_000;
const valuesMax = 150;

/** Recorded in a turn: of 150 values each, some milliseconds' work. */
const dataPerTurn = 100;

export interface PutMetricDataOptions {
  readonly series: MinuteSeries;
  readonly clock: Clock;
  /** Waits for the call's next turn of the event loop. */
  readonly turn: () => Promise<void>;
}

/** All of a request is checked before any of it is recorded. */
export async function putMetricData(
  { series, clock, turn }: PutMetricDataOptions,
  input: CloudwatchInputs["PutMetricDataInput"],
): Promise<Record<string, never>> {
  const namespace = input.Namespace;
  if (namespace.startsWith("AWS/")) throw invalid(`The value ${namespace} for parameter Namespace is invalid.`);
  const nowMs = clock.epochMs();
  const data = input.MetricData ?? [];
  for (const [index, datum] of data.entries()) checkDatum(datum, `MetricData.member.${index + 1}`, nowMs);
  for (const [index, datum] of data.entries()) {
    if (index > 0 && index % dataPerTurn === 0) await turn();
    record(series, namespace, datum, nowMs);
  }
  return {};
}

function checkDatum(datum: MetricDatum, name: string, nowMs: number): void {
  const timestampMs = datum.Timestamp?.getTime() ?? nowMs;
  if (timestampMs > nowMs + 2 * hourMs) {
    throw invalid(`The parameter ${name}.Timestamp must specify a time no more than two hours in the future.`);
  }
  if (timestampMs < nowMs - 14 * 24 * hourMs) {
    throw invalid(`The parameter ${name}.Timestamp must specify a time within the past two weeks.`);
  }
  const given = [datum.Value, datum.StatisticValues, datum.Values].filter((each) => each !== undefined).length;
  if (given === 0) {
    throw new AwsError(
      "MissingParameter",
      `At least one of the parameters ${name}.Value, ${name}.Values must be specified.`,
    );
  }
  if (given > 1) {
    const text = `The parameters ${name}.Value, ${name}.Values and ${name}.StatisticValues are mutually exclusive and you have specified more than one.`;
    throw new AwsError("InvalidParameterCombination", text);
  }
  if (datum.Counts !== undefined && datum.Counts.length !== datum.Values?.length) {
    throw invalid(`The parameters ${name}.Values and ${name}.Counts must be of the same size.`);
  }
  if ((datum.Values?.length ?? 0) > valuesMax) {
    throw invalid(`The collection ${name}.Values must not have a size greater than ${valuesMax}.`);
  }
  const set = datum.StatisticValues;
  const numbers = [
    datum.Value,
    ...(datum.Values ?? []),
    ...(datum.Counts ?? []),
    set?.SampleCount,
    set?.Sum,
    set?.Minimum,
    set?.Maximum,
  ];
  for (const value of numbers) {
    if (value !== undefined && !Number.isFinite(value))
      throw invalid(`The value ${value} for parameter ${name}.Value is invalid.`);
  }
}

function record(series: MinuteSeries, namespace: string, datum: MetricDatum, nowMs: number): void {
  const key: SeriesKey = {
    namespace,
    metricName: datum.MetricName,
    dimensions: dimensionsOf(datum.Dimensions),
    unit: datum.Unit ?? "None",
  };
  const options: SampleOptions = {
    timestampMs: datum.Timestamp?.getTime() ?? nowMs,
    resolutionMs: datum.StorageResolution === 1 ? 10_000 : 60_000,
  };
  const set = datum.StatisticValues;
  if (set !== undefined) {
    const { SampleCount: sampleCount, Sum: sum, Minimum: minimum, Maximum: maximum } = set;
    series.recordSet(key, { sampleCount, sum, minimum, maximum }, options);
  } else if (datum.Value === undefined) {
    for (const [index, value] of (datum.Values ?? []).entries()) {
      series.record(key, { value, count: datum.Counts?.[index] ?? 1 }, options);
    }
  } else series.record(key, { value: datum.Value, count: 1 }, options);
}

function invalid(message: string): AwsError {
  return new AwsError("InvalidParameterValue", message);
}
