import { AwsError } from "@galatea/base";
import type { Datapoint } from "@galatea/base/metrics";

/** Returns a statistic of a data point; null if it is unknown. Statistic sets have no percentiles. */
export type StatisticFunction = (point: Datapoint) => number | null;

const simple: Readonly<Record<string, StatisticFunction>> = {
  SampleCount: (point) => point.sampleCount,
  Average: (point) => point.sum / point.sampleCount,
  Sum: (point) => point.sum,
  Minimum: (point) => point.minimum,
  Maximum: (point) => point.maximum,
};

export function isSimpleStatistic(name: string): boolean {
  return Object.hasOwn(simple, name);
}

/**
 * Returns one of the five statistics, or a percentile `p0`..`p100`. Throws an error that names any other extended
 * statistic.
 */
export function parseStatistic(name: string, parameter: string): StatisticFunction {
  const found = Object.hasOwn(simple, name) ? simple[name] : undefined;
  if (found !== undefined) return found;
  const percent = /^[pP](\d{1,3}(?:\.\d{1,10})?)$/.exec(name)?.[1];
  if (percent === undefined || Number(percent) > 100) {
    throw new AwsError("InvalidParameterValue", `The value ${name} for parameter ${parameter} is not supported.`);
  }
  return (point) => point.percentile(Number(percent) / 100);
}

const dayMs = 86_400_000;

/** Rounds a start time down as CloudWatch does: the older the time, the coarser the unit. */
export function roundedStartMs(startMs: number, periodMs: number, nowMs: number): number {
  const ageMs = nowMs - startMs;
  if (ageMs > 63 * dayMs) return floorTo(startMs, 3_600_000);
  if (ageMs > 15 * dayMs) return floorTo(startMs, 300_000);
  return floorTo(startMs, Math.min(60_000, periodMs));
}

export function checkMetricPeriod(seconds: number): void {
  if ([1, 5, 10, 20, 30].includes(seconds) || (seconds >= 60 && seconds % 60 === 0)) return;
  throw new AwsError("InvalidParameterValue", "The parameter Period must be a multiple of 60.");
}

export function checkTimeRange(startMs: number, endMs: number): void {
  if (startMs < endMs) return;
  const text = "The parameter StartTime must be less than the parameter EndTime.";
  throw new AwsError("InvalidParameterValue", text);
}

function floorTo(value: number, step: number): number {
  return Math.floor(value / step) * step;
}
