import { parseJsonSelector, readFilterPattern, type FilterPattern } from "../filter-patterns/index.ts";
import { logParameterError as invalid } from "../log-names.ts";

/** As it is kept: a metric out of the log events of a group that match. */
export interface MetricFilterRecord {
  readonly group: string;
  readonly name: string;
  readonly pattern: string;
  readonly createdMs: number;
  readonly metric: {
    readonly namespace: string;
    readonly name: string;
    /** A number, or where in the event it stands: `$.latency`, `$bytes`. */
    readonly value: string;
    /** What an event says that does not match; null: nothing. */
    readonly defaultValue: number | null;
    readonly unit: string;
    /** Names with where in the event the values stand. */
    readonly dimensions: Readonly<Record<string, string>>;
  };
}

export interface MetricSample {
  readonly value: number;
  readonly dimensions: readonly { readonly name: string; readonly value: string }[];
}

/** Of one name or value, as for PutMetricData. */
const dimensionLengthMax = 255;
/** Beyond it, or below its negative, CloudWatch takes no values. */
const valueMax = 2 ** 360;

/** What an event says of the filter's metric; null: nothing. Throws AwsError for a filter that cannot be. */
export function metricFilter({
  pattern: source,
  metric,
}: MetricFilterRecord): (message: string) => MetricSample | null {
  const pattern = readFilterPattern(source);
  const constant = metric.value.trim() === "" ? NaN : Number(metric.value);
  for (const value of [constant, metric.defaultValue ?? 0]) {
    if (Math.abs(value) > valueMax) throw invalid(`The value ${value} is beyond what a metric has, which is 2^360.`);
  }
  const valueAt = Number.isNaN(constant) ? numeric(reader(pattern, metric.value)) : () => constant;
  const dimensions = Object.entries(metric.dimensions).map(([name, at]) => ({ name, at: reader(pattern, at) }));
  const { defaultValue } = metric;
  return (message) => {
    if (!pattern.matches(message)) return defaultValue === null ? null : { value: defaultValue, dimensions: [] };
    const value = valueAt(message);
    if (value === null) return null;
    const found = dimensions.map(({ name, at }) => ({ name, value: at(message) }));
    // An event that lacks one of the values belongs to no metric.
    if (found.some((each) => each.value === null)) return null;
    return { value, dimensions: found.map((each) => ({ name: each.name, value: each.value ?? "" })) };
  };
}

/** What TestMetricFilter tells of a message that matches; null for another. */
export function extractedValues(pattern: FilterPattern, message: string): Readonly<Record<string, string>> | null {
  if (!pattern.matches(message)) return null;
  if (pattern.of === "terms") return {};
  if (pattern.of === "json") {
    const found = pattern.selectors.map((at) => [at, textOfValue(parseJsonSelector(at)(message))] as const);
    return Object.fromEntries(found.filter((each): each is readonly [string, string] => each[1] !== null));
  }
  const fields = [...(pattern.fieldsOf(message) ?? [])];
  return Object.fromEntries(fields.map(([name, value]) => [`$${name}`, value]));
}

/** The text that stands at a place of an event that matches. */
function reader(pattern: FilterPattern, at: string): (message: string) => string | null {
  if (at.startsWith("$.") || at.startsWith("$[")) {
    if (pattern.of !== "json") throw invalid(`${at} needs a filter pattern for JSON.`);
    const find = parseJsonSelector(at);
    return (message) => bounded(textOfValue(find(message)));
  }
  if (!at.startsWith("$"))
    throw invalid(`${at} is neither a number nor a place in a log event such as $.latency or $bytes.`);
  if (pattern.of !== "fields") throw invalid(`${at} needs a filter pattern of fields.`);
  return (message) => bounded(pattern.fieldsOf(message)?.get(at.slice(1)) ?? null);
}

function numeric(read: (message: string) => string | null): (message: string) => number | null {
  return (message) => {
    const text = read(message);
    const value = text === null || text.trim() === "" ? NaN : Number(text);
    return Math.abs(value) <= valueMax ? value : null;
  };
}

function textOfValue(value: unknown): string | null {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}

const bounded = (text: string | null) =>
  text === null || text === "" || text.length > dimensionLengthMax ? null : text;
