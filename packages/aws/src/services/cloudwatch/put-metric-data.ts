import { AwsError, unreachable, type Clock } from "@galatea/base";
import type { MetricStore, SampleOptions, SeriesKey, StatisticSet } from "@galatea/base/metrics";
import type { CloudwatchInputs } from "../../spec/gen/cloudwatch.ts";
import { parseDimensions } from "./dimensions.ts";

type MetricDatum = CloudwatchInputs["MetricDatum"];

const hourMs = 3_600_000;
const valuesMax = 150;
const dataMax = 1000;
/** Values above this limit, or below its negative, are rejected. */
const valueMax = 2 ** 360;

/** Number of data that are recorded in one event loop tick. With 150 values each, they take a few milliseconds. */
const dataPerTick = 100;

export interface PutMetricDataOptions {
  readonly series: MetricStore;
  readonly clock: Clock;
  /** Resolves in the call's next tick of the event loop. */
  readonly nextTick: () => Promise<void>;
}

/** The samples of a datum: values with their counts, or a statistic set. */
type Seen =
  | { readonly kind: "values"; readonly values: readonly number[]; readonly counts: readonly number[] | null }
  | { readonly kind: "set"; readonly set: StatisticSet };

interface CheckedDatum {
  readonly key: SeriesKey;
  readonly options: SampleOptions;
  readonly seen: Seen;
}

/** Checks all data of a request, then records them. An invalid request therefore records nothing. */
export async function putMetricData(
  { series, clock, nextTick }: PutMetricDataOptions,
  input: CloudwatchInputs["PutMetricDataInput"],
): Promise<Record<string, never>> {
  const { Namespace: namespace } = input;
  if (namespace.startsWith("AWS/")) throw invalid(`The value ${namespace} for parameter Namespace is invalid.`);
  const nowMs = clock.epochMs();
  const data = dataOf(input);
  if (data.length > dataMax) throw invalid(`The collection MetricData must not have a size greater than ${dataMax}.`);
  const checked = data.map(({ name, datum }): CheckedDatum => {
    const timestampMs = checkedTimeMs(datum, name, nowMs);
    const { MetricName: metricName, Unit: unit = "None" } = datum;
    return {
      key: { namespace, metricName, dimensions: parseDimensions(datum.Dimensions), unit },
      options: { timestampMs, resolutionMs: datum.StorageResolution === 1 ? 10_000 : 60_000 },
      seen: checkedValues(datum, name),
    };
  });
  for (const [index, datum] of checked.entries()) {
    if (index > 0 && index % dataPerTick === 0) await nextTick();
    record(series, datum);
  }
  return {};
}

/**
 * Returns each datum with its path in the request. Data of an entity are recorded like other data; the entity itself is
 * not stored.
 */
function dataOf(input: CloudwatchInputs["PutMetricDataInput"]) {
  const named = (data: readonly MetricDatum[] | undefined, before: string) =>
    (data ?? []).map((datum, index) => ({ name: `${before}MetricData.member.${index + 1}`, datum }));
  const ofEntities = (input.EntityMetricData ?? []).flatMap(({ MetricData: data }, index) =>
    named(data, `EntityMetricData.member.${index + 1}.`),
  );
  return [...named(input.MetricData, ""), ...ofEntities];
}

function checkedTimeMs({ Timestamp: timestamp }: MetricDatum, name: string, nowMs: number): number {
  const timestampMs = timestamp?.getTime() ?? nowMs;
  if (timestampMs > nowMs + 2 * hourMs) {
    throw invalid(`The parameter ${name}.Timestamp must specify a time no more than two hours in the future.`);
  }
  if (timestampMs < nowMs - 14 * 24 * hourMs) {
    throw invalid(`The parameter ${name}.Timestamp must specify a time within the past two weeks.`);
  }
  return timestampMs;
}

function checkedValues(datum: MetricDatum, name: string): Seen {
  const { Value: value, Values: values, Counts: counts, StatisticValues: set } = datum;
  const input = [value, set, values].filter((each) => each !== undefined).length;
  if (input > 1) {
    const text = `The parameters ${name}.Value, ${name}.Values and ${name}.StatisticValues are mutually exclusive and you have specified more than one.`;
    throw new AwsError("InvalidParameterCombination", text);
  }
  if (input > 0 && counts !== undefined && counts.length !== values?.length) {
    throw invalid(`The parameters ${name}.Values and ${name}.Counts must be of the same size.`);
  }
  if (value !== undefined) {
    checkNumbers([value], name);
    return { kind: "values", values: [value], counts: null };
  }
  if (values !== undefined) {
    if (values.length > valuesMax) {
      throw invalid(`The collection ${name}.Values must not have a size greater than ${valuesMax}.`);
    }
    checkNumbers([...values, ...(counts ?? [])], name);
    return { kind: "values", values, counts: counts ?? null };
  }
  if (set !== undefined) {
    const { SampleCount: sampleCount, Sum: sum, Minimum: minimum, Maximum: maximum } = set;
    checkNumbers([sampleCount, sum, minimum, maximum], name);
    return { kind: "set", set: { sampleCount, sum, minimum, maximum } };
  }
  throw new AwsError(
    "MissingParameter",
    `At least one of the parameters ${name}.Value, ${name}.Values must be specified.`,
  );
}

function checkNumbers(numbers: readonly number[], name: string): void {
  for (const value of numbers) {
    if (!(Math.abs(value) <= valueMax)) throw invalid(`The value ${value} for parameter ${name}.Value is invalid.`);
  }
}

function record(series: MetricStore, { key, options, seen }: CheckedDatum): void {
  switch (seen.kind) {
    case "values":
      for (const [index, value] of seen.values.entries()) {
        series.record(key, { value, count: seen.counts?.[index] ?? 1 }, options);
      }
      return;
    case "set":
      series.recordSet(key, seen.set, options);
      return;
    default:
      unreachable(seen);
  }
}

function invalid(message: string): AwsError {
  return new AwsError("InvalidParameterValue", message);
}
