import { parseJsonSelector, parseFilterPattern, type FilterPattern } from "../filter-patterns/index.ts";
import { logParameterError as invalid } from "../log-names.ts";

/** A stored metric filter, which derives a metric from a group's log events that match. */
export interface MetricFilterRecord {
  readonly group: string;
  readonly name: string;
  readonly pattern: string;
  readonly createdMs: number;
  readonly metric: {
    readonly namespace: string;
    readonly name: string;
    /** A number, or a selector such as `$.latency` or `$bytes` of a number in the event. */
    readonly value: string;
    /** The value recorded for an event that does not match; null: no value is recorded. */
    readonly defaultValue: number | null;
    readonly unit: string;
    /** Dimension names, with selectors of their values in the event. */
    readonly dimensions: Readonly<Record<string, string>>;
  };
}

export interface MetricSample {
  readonly value: number;
  readonly dimensions: readonly { readonly name: string; readonly value: string }[];
}

/** Maximum length of a name or value, as for PutMetricData. */
const dimensionLengthMax = 255;
/** CloudWatch rejects values above this limit, or below its negative. */
const valueMax = 2 ** 360;

/**
 * Returns a function that computes the sample that a filter records for an event, or null for no sample. Throws AwsError for an invalid
 * filter.
 */
export function compileMetricFilter({
  pattern: source,
  metric,
}: MetricFilterRecord): (message: string) => MetricSample | null {
  const pattern = parseFilterPattern(source);
  const constant = metric.value.trim() === "" ? NaN : Number(metric.value);
  for (const value of [constant, metric.defaultValue ?? 0]) {
    if (Math.abs(value) > valueMax) throw invalid(`The value ${value} exceeds the maximum of a metric, 2^360.`);
  }
  const valueAt = Number.isNaN(constant) ? numeric(reader(pattern, metric.value)) : () => constant;
  const dimensions = Object.entries(metric.dimensions).map(([name, at]) => ({ name, at: reader(pattern, at) }));
  const { defaultValue } = metric;
  return (message) => {
    if (!pattern.matches(message)) return defaultValue === null ? null : { value: defaultValue, dimensions: [] };
    const value = valueAt(message);
    if (value === null) return null;
    const found = dimensions.map(({ name, at }) => ({ name, value: at(message) }));
    // An event without one of the dimensions produces no sample.
    if (found.some((each) => each.value === null)) return null;
    return { value, dimensions: found.map((each) => ({ name: each.name, value: each.value ?? "" })) };
  };
}

/** Returns the values that TestMetricFilter shows for a matching message; null for a message without a match. */
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

/** Returns a function that reads the text at a selector in a matching event. */
function reader(pattern: FilterPattern, at: string): (message: string) => string | null {
  if (at.startsWith("$.") || at.startsWith("$[")) {
    if (pattern.of !== "json") throw invalid(`${at} needs a filter pattern for JSON.`);
    const find = parseJsonSelector(at);
    return (message) => bounded(textOfValue(find(message)));
  }
  if (!at.startsWith("$")) throw invalid(`${at} is neither a number nor a selector such as $.latency or $bytes.`);
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
