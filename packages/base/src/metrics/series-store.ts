import type { Dimension, MetricName, StoredSeries } from "./series.ts";
import { MetricPoint } from "./metric-point.ts";
import { tierCutoffMs, type SeriesTier } from "./series-tiers.ts";

/** Estimated memory of a series without its names and points. */
const seriesBytes = 1000;
/** Estimated memory of a dimension without its texts. */
const dimensionBytes = 100;

/** Estimated memory of a point without its histogram. */
export const pointBytes = 160;

/**
 * The points of one series, by tier, in ascending order of time. The series is in `queue` while some of its points are
 * not persisted.
 */
export class MetricSeries {
  readonly identity: StoredSeries;
  /** True after the store has evicted the series. A recorder that refers to the series must then look it up again. */
  isEvicted = false;
  /** True if the series' identity is persisted. */
  isStored = false;
  lastRecordedMs = 0;
  /** Estimated memory of the points. A point's histogram is counted once a later point exists. */
  byteLength = 0;
  readonly #tiers: readonly SeriesTier[];
  readonly #points: MetricPoint[][];
  readonly #firstTier: number;
  /**
   * Start of the interval in which the finest points are recorded (`refine`). It is a multiple of the period of the
   * series' own tier.
   */
  #fineFromMs = 0;
  #fineUntilMs = 0;
  readonly #changed = new Set<MetricPoint>();
  readonly #queue: Set<MetricSeries>;

  constructor(identity: StoredSeries, tiers: readonly SeriesTier[], queue: Set<MetricSeries>) {
    this.identity = identity;
    this.#queue = queue;
    this.#tiers = tiers;
    this.#points = tiers.map(() => []);
    this.#firstTier = Math.max(
      0,
      tiers.findIndex((tier) => tier.periodMs >= identity.resolutionMs),
    );
  }

  /** Estimated memory of the series' names, which are stored as long as the series exists. */
  get identityBytes(): number {
    const { namespace, metricName, dimensions } = this.key;
    const textChars = dimensions.reduce(
      (sum, { name, value }) => sum + name.length + value.length,
      namespace.length + metricName.length,
    );
    // Each text is stored twice: in the key and in the metric's id.
    return seriesBytes + dimensions.length * dimensionBytes + 2 * textChars;
  }

  get key(): StoredSeries["key"] {
    return this.identity.key;
  }

  /** Number of points that are not persisted. */
  get changedCount(): number {
    return this.#changed.size;
  }

  get isEmpty(): boolean {
    return this.#points.every((points) => points.length === 0);
  }

  /**
   * Stores points of the finest tier from the next whole period until at least `untilMs`. Both ends are rounded to
   * whole periods, so that a merged point is always complete.
   */
  refine(nowMs: number, untilMs: number): void {
    const { periodMs } = this.#tiers[this.#firstTier] as SeriesTier;
    const wholePeriod = (timeMs: number) => Math.ceil(timeMs / periodMs) * periodMs;
    if (nowMs >= this.#fineUntilMs) this.#fineFromMs = wholePeriod(nowMs);
    this.#fineUntilMs = Math.max(this.#fineUntilMs, wholePeriod(untilMs));
  }

  /**
   * Returns the point in which to record a sample, in the finest tier whose retention includes this time. Null if no
   * tier's does.
   */
  pointAt(timestampMs: number, nowMs: number): MetricPoint | null {
    const isFine = timestampMs >= this.#fineFromMs && timestampMs < this.#fineUntilMs;
    for (let index = isFine ? 0 : this.#firstTier; index < this.#tiers.length; index++) {
      const tier = this.#tiers[index] as SeriesTier;
      if (timestampMs < tierCutoffMs(this.#tiers, index, nowMs)) continue;
      const point = this.#pointOf(index, timestampMs - (timestampMs % tier.periodMs));
      this.markChanged(point);
      if (timestampMs > this.lastRecordedMs) this.lastRecordedMs = timestampMs;
      return point;
    }
    return null;
  }

  markChanged(point: MetricPoint): void {
    if (this.#changed.size === 0) this.#queue.add(this);
    this.#changed.add(point);
  }

  /** Marks the point with this width and start as changed, if the point still exists. */
  markChangedAt(periodMs: number, startMs: number): void {
    const points = this.#points[this.#tiers.findIndex((tier) => tier.periodMs === periodMs)] ?? [];
    const point = points[indexAt(points, startMs)];
    if (point?.startMs === startMs) this.markChanged(point);
  }

  restore(point: MetricPoint): void {
    const index = this.#tiers.findIndex((tier) => tier.periodMs === point.periodMs);
    if (index < 0) return;
    // When this point was persisted, the finer points of its period had already been merged into it.
    for (let finer = 0; finer < index; finer++) this.#remove(finer, point.startMs, point.startMs + point.periodMs);
    const points = this.#points[index] as MetricPoint[];
    const at = indexAt(points, point.startMs);
    const replaced = points[at]?.startMs === point.startMs ? points[at] : undefined;
    if (replaced !== undefined) this.byteLength -= pointBytes + replaced.histogramBytes;
    points.splice(at, replaced === undefined ? 0 : 1, point);
    this.byteLength += pointBytes + point.histogramBytes;
    this.lastRecordedMs = Math.max(this.lastRecordedMs, point.startMs);
  }

  /** Yields points that begin in [startMs, endMs) and are no wider than `periodMs`. */
  *pointsIn(startMs: number, endMs: number, periodMs: number): Generator<MetricPoint> {
    for (let index = this.#tiers.length - 1; index >= 0; index--) {
      if ((this.#tiers[index] as SeriesTier).periodMs > periodMs) continue;
      const points = this.#points[index] as MetricPoint[];
      for (let at = indexAt(points, startMs); at < points.length; at++) {
        const point = points[at] as MetricPoint;
        if (point.startMs >= endMs) break;
        yield point;
      }
    }
  }

  /** Returns the changed points and marks them as unchanged. Omits the point that covers `openAtMs`. */
  takeChanged(openAtMs: number | null): readonly MetricPoint[] {
    const acquired: MetricPoint[] = [];
    for (const point of this.#changed) {
      if (openAtMs !== null && point.startMs <= openAtMs && openAtMs < point.startMs + point.periodMs) continue;
      this.#changed.delete(point);
      acquired.push(point);
    }
    if (this.#changed.size === 0) this.#queue.delete(this);
    return acquired;
  }

  /** Merges the points that exceed a tier's retention into the next tier. Drops such points of the last tier. */
  age(nowMs: number): void {
    for (let index = 0; index < this.#tiers.length; index++) {
      const oldest = (this.#points[index] as MetricPoint[])[0];
      const beforeMs = tierCutoffMs(this.#tiers, index, nowMs);
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

  /** Drops the points before a time in all tiers. Returns the number of dropped points that were not persisted. */
  dropBefore(timestampMs: number): number {
    const before = this.changedCount;
    for (let index = 0; index < this.#tiers.length; index++) this.#remove(index, 0, timestampMs);
    return before - this.changedCount;
  }

  /** Adds the size of each point to the hour that contains the point. */
  addBytesByHour(hours: Map<number, number>): void {
    for (const points of this.#points) {
      for (const point of points) {
        const hour = Math.floor(point.startMs / 3_600_000);
        hours.set(hour, (hours.get(hour) ?? 0) + pointBytes + point.histogramBytes);
      }
    }
  }

  #remove(index: number, startMs: number, endMs: number): readonly MetricPoint[] {
    const points = this.#points[index] as MetricPoint[];
    const at = indexAt(points, startMs);
    const removed = points.splice(at, indexAt(points, endMs) - at);
    for (const point of removed) {
      this.#changed.delete(point);
      this.byteLength -= pointBytes + point.histogramBytes;
    }
    return removed;
  }

  #pointOf(index: number, startMs: number): MetricPoint {
    const points = this.#points[index] as MetricPoint[];
    const last = points.at(-1);
    if (last?.startMs === startMs) return last;
    const at = last === undefined || last.startMs < startMs ? points.length : indexAt(points, startMs);
    const found = points[at];
    if (found?.startMs === startMs) return found;
    const created = new MetricPoint(startMs, (this.#tiers[index] as SeriesTier).periodMs);
    points.splice(at, 0, created);
    this.byteLength += pointBytes;
    if (at === points.length - 1 && last !== undefined) this.byteLength += last.histogramBytes;
    return created;
  }
}

/** Returns the index of the first point that begins at `startMs` or later. */
function indexAt(points: readonly MetricPoint[], startMs: number): number {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((points[middle] as MetricPoint).startMs < startMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function sortedDimensions(dimensions: readonly Dimension[]): readonly Dimension[] {
  return dimensions.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** Returns a text that identifies an exact set of dimensions. */
export function metricId({ namespace, metricName, dimensions }: MetricName): string {
  let id = `${namespace}\0${metricName}`;
  for (const { name, value } of sortedDimensions(dimensions)) id += `\0${name}\0${value}`;
  return id;
}
