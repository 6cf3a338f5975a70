/** An error in a load. The message is a sentence for the user. */
export class LoadError extends Error {}

/** The total load of all instances over time, starting at time 0. */
export interface Load {
  readonly durationMs: number;
  /** Returns the requests per second at a time. */
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
const unitsMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: dayMs };

/**
 * Parses a plan such as `0-5m:10rps,5m-20m:200rps,20m-30m:200..10rps`. A range of two numbers means a load that changes
 * linearly between them. The load is zero at times that the plan does not contain.
 */
export function parsePlan(text: string): Load {
  const fields = text.split(",");
  if (fields.length > segmentsMax) throw new LoadError(`a plan has ${segmentsMax} parts at most`);
  const segments = fields.map(parseSegment);
  for (const [index, { fromMs }] of segments.entries()) {
    if (fromMs < (segments[index - 1]?.toMs ?? 0))
      throw new LoadError(`'${fields[index]}' begins before the previous part ends`);
  }
  return { durationMs: boundedDuration(segments.at(-1)?.toMs ?? 0), at: (timeMs) => valueIn(segments, timeMs) };
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

/** Returns the duration. Throws LoadError if it exceeds the maximum. */
export function boundedDuration(durationMs: number): number {
  if (durationMs > durationMsMax) throw new LoadError("a simulation lasts at most seven days");
  return durationMs;
}
