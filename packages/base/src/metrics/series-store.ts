import type { Dimension, MetricName, StoredSeries } from "./series.ts";
import { SeriesPoint } from "./series-point.ts";
import { cutoffMs, type SeriesTier } from "./series-tiers.ts";

/** Estimated memory of a series without its names and points. */
const seriesBytes = 1000;
/** The same of each dimension, without its texts. */
const dimensionBytes = 100;

/** Estimated memory of a point without its histogram. */
export const pointBytes = 160;

/**
 * One series: its points by tier, ascending in time. It stands in the queue that it is given while it has points that differ from
 * what was persisted.
 */
export class Series {
  readonly identity: StoredSeries;
  /** Dropped from its store: a recorder that still holds it must look it up again. */
  isEvicted = false;
  /** Its identity was persisted. */
  isStored = false;
  lastRecordedMs = 0;
  /** Estimated; a point's histogram counts once a later point was made. */
  byteLength = 0;
  readonly #tiers: readonly SeriesTier[];
  readonly #points: SeriesPoint[][];
  readonly #firstTier: number;
  /** When points are of the finest tier: from one whole period of the series' own tier to another. */
  #fineFromMs = 0;
  #fineUntilMs = 0;
  readonly #changed = new Set<SeriesPoint>();
  readonly #queue: Set<Series>;

  constructor(identity: StoredSeries, tiers: readonly SeriesTier[], queue: Set<Series>) {
    this.identity = identity;
    this.#queue = queue;
    this.#tiers = tiers;
    this.#points = tiers.map(() => []);
    this.#firstTier = Math.max(
      0,
      tiers.findIndex((tier) => tier.periodMs >= identity.resolutionMs),
    );
  }

  /** Estimated memory of what names the series, which it takes as long as it is there. */
  get identityBytes(): number {
    const { namespace, metricName, dimensions } = this.key;
    const textChars = dimensions.reduce(
      (sum, { name, value }) => sum + name.length + value.length,
      namespace.length + metricName.length,
    );
    // Every text is there once in the key, and once in the metric's id.
    return seriesBytes + dimensions.length * dimensionBytes + 2 * textChars;
  }

  get key(): StoredSeries["key"] {
    return this.identity.key;
  }

  get isEmpty(): boolean {
    return this.#points.every((points) => points.length === 0);
  }

  /**
   * Makes points of the finest tier from the next whole period on, until that time at least. Both ends are whole periods: no point covers finer
   * ones that are no part of it.
   */
  refine(nowMs: number, untilMs: number): void {
    const { periodMs } = this.#tiers[this.#firstTier] as SeriesTier;
    const wholePeriod = (timeMs: number) => Math.ceil(timeMs / periodMs) * periodMs;
    if (nowMs >= this.#fineUntilMs) this.#fineFromMs = wholePeriod(nowMs);
    this.#fineUntilMs = Math.max(this.#fineUntilMs, wholePeriod(untilMs));
  }

  /** The point to record into; of the finest tier that still keeps that time, null when none does. */
  pointAt(timestampMs: number, nowMs: number): SeriesPoint | null {
    const isFine = timestampMs >= this.#fineFromMs && timestampMs < this.#fineUntilMs;
    for (let index = isFine ? 0 : this.#firstTier; index < this.#tiers.length; index++) {
      const tier = this.#tiers[index] as SeriesTier;
      if (timestampMs < cutoffMs(this.#tiers, index, nowMs)) continue;
      const point = this.#pointOf(index, timestampMs - (timestampMs % tier.periodMs));
      this.markChanged(point);
      if (timestampMs > this.lastRecordedMs) this.lastRecordedMs = timestampMs;
      return point;
    }
    return null;
  }

  markChanged(point: SeriesPoint): void {
    if (this.#changed.size === 0) this.#queue.add(this);
    this.#changed.add(point);
  }

  /** As `markChanged`, where there still is such a point. */
  markChangedAt(periodMs: number, startMs: number): void {
    const points = this.#points[this.#tiers.findIndex((tier) => tier.periodMs === periodMs)] ?? [];
    const point = points[indexAt(points, startMs)];
    if (point?.startMs === startMs) this.markChanged(point);
  }

  restore(point: SeriesPoint): void {
    const index = this.#tiers.findIndex((tier) => tier.periodMs === point.periodMs);
    if (index < 0) return;
    // It was persisted when all that it covers was merged into it.
    for (let finer = 0; finer < index; finer++) this.#remove(finer, point.startMs, point.startMs + point.periodMs);
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

  /** Without the one that covers `openAtMs`. */
  takeChanged(openAtMs: number | null): readonly SeriesPoint[] {
    const taken: SeriesPoint[] = [];
    for (const point of this.#changed) {
      if (openAtMs !== null && point.startMs <= openAtMs && openAtMs < point.startMs + point.periodMs) continue;
      this.#changed.delete(point);
      taken.push(point);
    }
    if (this.#changed.size === 0) this.#queue.delete(this);
    return taken;
  }

  /** Merges what a tier no longer keeps into the next; the last tier's old points go. */
  age(nowMs: number): void {
    for (let index = 0; index < this.#tiers.length; index++) {
      const oldest = (this.#points[index] as SeriesPoint[])[0];
      const beforeMs = cutoffMs(this.#tiers, index, nowMs);
      if (oldest === undefined || oldest.startMs >= beforeMs) continue;
      const next = this.#tiers[index + 1];
      for (const point of this.#remove(index, 0, beforeMs)) {
        if (next === undefined) continue;
        const into = this.#pointOf(index + 1, point.startMs - (point.startMs % next.periodMs));
        into.merge(point);
        this.markChanged(into);
      }
    }
  }

  dropBefore(timestampMs: number): void {
    for (let index = 0; index < this.#tiers.length; index++) this.#remove(index, 0, timestampMs);
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

  #remove(index: number, startMs: number, endMs: number): readonly SeriesPoint[] {
    const points = this.#points[index] as SeriesPoint[];
    const at = indexAt(points, startMs);
    const removed = points.splice(at, indexAt(points, endMs) - at);
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
