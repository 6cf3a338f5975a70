import type { Dimension, MetricName, ResolutionMs, SeriesKey } from "./series.ts";
import { SeriesPoint } from "./series-point.ts";
import type { SeriesTier } from "./series-tiers.ts";

/** Estimated memory of a point without its histogram. */
export const pointBytes = 160;

/** One series: its points by tier, ascending in time. `changed` is told of every point that differs from what was persisted. */
export class Series {
  readonly key: SeriesKey;
  readonly resolutionMs: ResolutionMs;
  /** Dropped from its store: a recorder that still holds it must look it up again. */
  isEvicted = false;
  lastRecordedMs = 0;
  /** Estimated; a point's histogram counts once a later point was made. */
  byteLength = 0;
  readonly #tiers: readonly SeriesTier[];
  readonly #points: SeriesPoint[][];
  readonly #firstTier: number;
  readonly #changed = new Set<SeriesPoint>();

  constructor(key: SeriesKey, resolutionMs: ResolutionMs, tiers: readonly SeriesTier[]) {
    this.key = key;
    this.resolutionMs = resolutionMs;
    this.#tiers = tiers;
    this.#points = tiers.map(() => []);
    this.#firstTier = Math.max(
      0,
      tiers.findIndex((tier) => tier.periodMs >= resolutionMs),
    );
  }

  get isEmpty(): boolean {
    return this.#points.every((points) => points.length === 0);
  }

  /** The point to record into; of the finest tier that still keeps that time, null when none does. */
  pointAt(timestampMs: number, nowMs: number): SeriesPoint | null {
    for (let index = this.#firstTier; index < this.#tiers.length; index++) {
      const tier = this.#tiers[index] as SeriesTier;
      if (timestampMs < nowMs - tier.retentionMs) continue;
      const point = this.#pointOf(index, timestampMs - (timestampMs % tier.periodMs));
      this.#changed.add(point);
      if (timestampMs > this.lastRecordedMs) this.lastRecordedMs = timestampMs;
      return point;
    }
    return null;
  }

  /** The newest point again, when it covers that time. */
  markChanged(point: SeriesPoint): void {
    this.#changed.add(point);
  }

  restore(point: SeriesPoint): void {
    const index = this.#tiers.findIndex((tier) => tier.periodMs === point.periodMs);
    if (index < 0) return;
    const points = this.#points[index] as SeriesPoint[];
    const at = indexAt(points, point.startMs);
    const replaced = points[at]?.startMs === point.startMs ? points[at] : undefined;
    if (replaced !== undefined) this.byteLength -= pointBytes + replaced.histogramBytes;
    points.splice(at, replaced === undefined ? 0 : 1, point);
    this.byteLength += pointBytes + point.histogramBytes;
    this.lastRecordedMs = Math.max(this.lastRecordedMs, point.startMs);
  }

  /** Points that begin in [startMs, endMs) and are no wider than `periodMs`. */
  *pointsIn(startMs: number, endMs: number, periodMs: number): Generator<SeriesPoint> {
    for (let index = this.#tiers.length - 1; index >= 0; index--) {
      if ((this.#tiers[index] as SeriesTier).periodMs > periodMs) continue;
      const points = this.#points[index] as SeriesPoint[];
      for (let at = indexAt(points, startMs); at < points.length; at++) {
        const point = points[at] as SeriesPoint;
        if (point.startMs >= endMs) break;
        yield point;
      }
    }
  }

  takeChanged(): readonly SeriesPoint[] {
    if (this.#changed.size === 0) return [];
    const changed = [...this.#changed];
    this.#changed.clear();
    return changed;
  }

  /** Merges what a tier no longer keeps into the next; the last tier's old points go. */
  age(nowMs: number): void {
    for (const [index, tier] of this.#tiers.entries()) {
      const oldest = (this.#points[index] as SeriesPoint[])[0];
      if (oldest === undefined || oldest.startMs >= nowMs - tier.retentionMs) continue;
      const next = this.#tiers[index + 1];
      for (const point of this.#removeBefore(index, nowMs - tier.retentionMs)) {
        if (next === undefined) continue;
        const into = this.#pointOf(index + 1, point.startMs - (point.startMs % next.periodMs));
        into.merge(point);
        this.#changed.add(into);
      }
    }
  }

  dropBefore(timestampMs: number): void {
    for (let index = 0; index < this.#tiers.length; index++) this.#removeBefore(index, timestampMs);
  }

  /** Adds this series' bytes to the hours they belong to. */
  addBytesByHour(hours: Map<number, number>): void {
    for (const points of this.#points) {
      for (const point of points) {
        const hour = Math.floor(point.startMs / 3_600_000);
        hours.set(hour, (hours.get(hour) ?? 0) + pointBytes + point.histogramBytes);
      }
    }
  }

  #removeBefore(index: number, timestampMs: number): readonly SeriesPoint[] {
    const points = this.#points[index] as SeriesPoint[];
    const removed = points.splice(0, indexAt(points, timestampMs));
    for (const point of removed) {
      this.#changed.delete(point);
      this.byteLength -= pointBytes + point.histogramBytes;
    }
    return removed;
  }

  #pointOf(index: number, startMs: number): SeriesPoint {
    const points = this.#points[index] as SeriesPoint[];
    const last = points.at(-1);
    if (last?.startMs === startMs) return last;
    const at = last === undefined || last.startMs < startMs ? points.length : indexAt(points, startMs);
    const found = points[at];
    if (found?.startMs === startMs) return found;
    const made = new SeriesPoint(startMs, (this.#tiers[index] as SeriesTier).periodMs);
    points.splice(at, 0, made);
    this.byteLength += pointBytes;
    if (at === points.length - 1 && last !== undefined) this.byteLength += last.histogramBytes;
    return made;
  }
}

/** Index of the first point that begins at `startMs` or later. */
function indexAt(points: readonly SeriesPoint[], startMs: number): number {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((points[middle] as SeriesPoint).startMs < startMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function sortedDimensions(dimensions: readonly Dimension[]): readonly Dimension[] {
  return dimensions.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** One text for one exact set of dimensions. */
export function metricId({ namespace, metricName, dimensions }: MetricName): string {
  let id = `${namespace}\0${metricName}`;
  for (const { name, value } of sortedDimensions(dimensions)) id += `\0${name}\0${value}`;
  return id;
}
