import { AwsError } from "@galatea/base";
import type { ResolutionMs, SeriesKey } from "@galatea/base/metrics";

export const metricBatchPath = "/galatea/metrics";

/** Samples of one series. */
export interface ReportedSeries {
  readonly key: SeriesKey;
  readonly resolutionMs: ResolutionMs;
  readonly samples: readonly {
    /** Start of the period, in milliseconds since the epoch. */
    readonly startMs: number;
    /** Values with the number of samples of each. */
    readonly values: readonly (readonly [value: number, count: number])[];
  }[];
}

/** Samples that a gateway reports together. */
export interface MetricBatch {
  /** A random id of the gateway's process. */
  readonly gateway: string;
  /** Increases by one with each batch of the gateway. */
  readonly number: number;
  readonly series: readonly ReportedSeries[];
}

/** Parses the body of a report. Throws AwsError. */
export function parseMetricBatch(body: string): MetricBatch {
  let batch: unknown = null;
  try {
    batch = JSON.parse(body);
  } catch {
    // The check below rejects it.
  }
  if (isBatch(batch)) return batch;
  throw new AwsError("ValidationException", "The body is not a batch of metrics.");
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
const isListOf = (value: unknown, isItem: (item: unknown) => boolean) => Array.isArray(value) && value.every(isItem);

function isBatch(value: unknown): value is MetricBatch {
  if (!isObject(value)) return false;
  const { gateway, number, series } = value;
  return (
    typeof gateway === "string" && gateway.length <= 64 && Number.isSafeInteger(number) && isListOf(series, isSeries)
  );
}

function isSeries(value: unknown): boolean {
  if (!isObject(value) || !isObject(value["key"])) return false;
  const { namespace, metricName, unit, dimensions } = value["key"];
  const isKey = [namespace, metricName, unit].every((each) => typeof each === "string");
  const isDimension = (each: unknown) =>
    isObject(each) && typeof each["name"] === "string" && typeof each["value"] === "string";
  const isResolution = value["resolutionMs"] === 10_000 || value["resolutionMs"] === 60_000;
  return isKey && isListOf(dimensions, isDimension) && isResolution && isListOf(value["samples"], isSample);
}

const isSample = (value: unknown) =>
  isObject(value) && Number.isSafeInteger(value["startMs"]) && isListOf(value["values"], isValue);

const isValue = (value: unknown) =>
  Array.isArray(value) &&
  value.length === 2 &&
  Number.isFinite(value[0]) &&
  Number.isSafeInteger(value[1]) &&
  (value[1] as number) > 0;
