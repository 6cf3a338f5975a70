/** A sentence that says what of a load cannot be read. */
export class LoadError extends Error {}

/** What is asked of all instances together, over time from 0. */
export interface Load {
  readonly durationMs: number;
  /** Requests a second, or the sum of what all instances measure. */
  at(timeMs: number): number;
}

interface Segment {
  readonly fromMs: number;
  readonly toMs: number;
  readonly from: number;
  readonly to: number;
}

const dayMs = 86_400_000;
const durationMsMax = 7 * dayMs;
const segmentsMax = 1000;
const pointsMax = 20_000;
/** A value stands until the next one, for so long at most. */
const heldMs = 5 * 60_000;
const unitsMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: dayMs };

/** `0-5m:10rps,5m-20m:200rps,20m-30m:200..10rps`: requests a second, rising or falling evenly where there are two of them; nothing in gaps. */
export function parsePlan(text: string): Load {
  const parts = text.split(",");
  if (parts.length > segmentsMax) throw new LoadError(`a plan has ${segmentsMax} parts at most`);
  const segments = parts.map(parseSegment);
  for (const [index, { fromMs }] of segments.entries()) {
    if (fromMs < (segments[index - 1]?.toMs ?? 0))
      throw new LoadError(`'${parts[index]}' begins before the part before it ends`);
  }
  return { durationMs: bounded(segments.at(-1)?.toMs ?? 0), at: (timeMs) => valueIn(segments, timeMs) };
}

function parseSegment(text: string): Segment {
  const found = /^\s*([\d.]+[smhd]?)\s*-\s*([\d.]+[smhd]?)\s*:\s*([\d.]+)(?:\s*\.\.\s*([\d.]+))?\s*(rps|rpm)\s*$/.exec(
    text.replace(/(\d)\.\.(\d)/, "$1 .. $2"),
  );
  if (found === null) throw new LoadError(`'${text}' is not like 5m-20m:200rps`);
  const [, begin = "", end = "", first = "", last = first, unit] = found;
  const [fromMs, toMs] = [parseTime(begin), parseTime(end)];
  if (toMs <= fromMs) throw new LoadError(`'${text}' ends before it begins`);
  const perSecond = unit === "rpm" ? 1 / 60 : 1;
  return { fromMs, toMs, from: numberOf(first) * perSecond, to: numberOf(last) * perSecond };
}

function parseTime(text: string): number {
  const unit = unitsMs[text.slice(-1)];
  const value = numberOf(unit === undefined ? text : text.slice(0, -1));
  if (unit === undefined && value !== 0) throw new LoadError(`'${text}' has no unit: s, m, h or d`);
  return value * (unit ?? 0);
}

function numberOf(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) throw new LoadError(`'${text}' is no number`);
  return value;
}

function valueIn(segments: readonly Segment[], timeMs: number): number {
  const found = segments.find(({ fromMs, toMs }) => timeMs >= fromMs && timeMs < toMs);
  if (found === undefined) return 0;
  const { fromMs, toMs, from, to } = found;
  return from + ((to - from) * (timeMs - fromMs)) / (toMs - fromMs);
}

/**
 * Recorded datapoints: CSV of times and values, or JSON as GetMetricData and GetMetricStatistics answer, or pairs. `scale`: what a value is
 * multiplied by to be that of all instances together.
 */
export function readSeries(text: string, scale: number): Load {
  const points = (/^\s*[[{]/.test(text) ? fromJson(text) : fromCsv(text)).toSorted(([a], [b]) => a - b);
  const [first] = points;
  if (first === undefined) throw new LoadError("the series has no datapoints");
  if (points.length > pointsMax) throw new LoadError(`the series has more than ${pointsMax} datapoints`);
  const [startMs] = first;
  const segments = points.map(([timeMs, value], index): Segment => {
    const fromMs = timeMs - startMs;
    const toMs = Math.min(fromMs + heldMs, (points[index + 1]?.[0] ?? timeMs + 60_000) - startMs);
    return { fromMs, toMs, from: value * scale, to: value * scale };
  });
  return { durationMs: bounded(segments.at(-1)?.toMs ?? 0), at: lookUp(segments) };
}

/** Times are asked for in ascending order: the search goes on where it was. */
function lookUp(segments: readonly Segment[]): (timeMs: number) => number {
  let at = 0;
  return (timeMs) => {
    if (timeMs < (segments[at]?.fromMs ?? 0)) at = 0;
    while (at + 1 < segments.length && timeMs >= (segments[at + 1]?.fromMs ?? Infinity)) at++;
    const segment = segments[at];
    return segment === undefined ? 0 : valueIn([segment], timeMs);
  };
}

type Point = readonly [timeMs: number, value: number];

function fromCsv(text: string): readonly Point[] {
  return text.split(/\r?\n/).flatMap((line, index): Point[] => {
    if (line.trim() === "") return [];
    const [time = "", value = ""] = line.split(/[,;\t]/).map((cell) => cell.trim().replaceAll('"', ""));
    const point = pointOf(time, value === "" ? Number.NaN : Number(value));
    if (point !== null) return [point];
    if (index === 0) return [];
    throw new LoadError(`line ${index + 1} is not a time and a value: ${line.slice(0, 60)}`);
  });
}

function fromJson(text: string): readonly Point[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new LoadError(`the series is not JSON: ${(error as Error).message}`);
  }
  const points = pairsIn(value).map(([time, each]) => pointOf(time, each));
  if (points.includes(null)) throw new LoadError("a datapoint of the series is not a time and a number");
  return points as readonly Point[];
}

const statistics = ["Sum", "Average", "Maximum", "Minimum", "SampleCount", "value"];

function pairsIn(value: unknown): readonly (readonly [unknown, unknown])[] {
  if (Array.isArray(value))
    return value.map((each) => (Array.isArray(each) ? ([each[0], each[1]] as const) : pairOf(each)));
  const {
    MetricDataResults: results,
    Timestamps: times,
    Values: values,
    Datapoints: points,
  } = (value ?? {}) as Record<string, unknown>;
  if (Array.isArray(results) && results.length === 1) return pairsIn(results[0]);
  if (Array.isArray(results)) throw new LoadError(`the answer has ${results.length} series, not one`);
  if (Array.isArray(points)) return points.map(pairOf);
  if (Array.isArray(times) && Array.isArray(values)) return times.map((time, index) => [time, values[index]] as const);
  throw new LoadError("the series is neither pairs, nor an answer of GetMetricData or GetMetricStatistics");
}

function pairOf(point: unknown): readonly [unknown, unknown] {
  const found = (point ?? {}) as Record<string, unknown>;
  const name = statistics.find((each) => typeof found[each] === "number");
  return [found["Timestamp"] ?? found["time"], name === undefined ? undefined : found[name]];
}

/** Epoch seconds, milliseconds, or ISO 8601; null for what is neither, and for values that are no load. */
function pointOf(time: unknown, value: unknown): Point | null {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) return null;
  const number = typeof time === "number" ? time : /^\d+(\.\d+)?$/.test(String(time)) ? Number(time) : null;
  const timeMs = number === null ? Date.parse(String(time)) : number < 1e11 ? number * 1000 : number;
  return Number.isFinite(timeMs) ? [timeMs, value] : null;
}

function bounded(durationMs: number): number {
  if (durationMs > durationMsMax) throw new LoadError("a simulation is of seven days at most");
  return durationMs;
}
