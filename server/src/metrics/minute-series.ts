import type { Clock } from "../base/index.ts";
import type {
  Datapoint,
  MetricName,
  PointsQuery,
  ResolutionMs,
  SeriesFilter,
  SeriesKey,
  SeriesRecorder,
  StatisticSet,
  StoredPoint,
} from "./series.ts";
import { SeriesPoint } from "./series-point.ts";
import { Series, metricId, sortedDimensions } from "./series-store.ts";
import { defaultTiers, type SeriesTier } from "./series-tiers.ts";

export interface MinuteSeriesOptions {
  readonly clock: Clock;
  /** Beyond it the series recorded to longest ago go. */
  readonly seriesMax: number;
  /** Estimated memory of all points; beyond it the oldest hours go. */
  readonly bytesMax: number;
  /** CloudWatch's by default. */
  readonly tiers?: readonly SeriesTier[];
}

export interface SampleOptions {
  readonly timestampMs: number;
  readonly resolutionMs: ResolutionMs;
}

/** Tiers are aged and bounds enforced at most this often. */
const agingIntervalMs = 60_000;

/** Statistics by minute, bounded in memory. One exact set of dimensions and one unit make a series. */
export class MinuteSeries {
  readonly #options: MinuteSeriesOptions;
  readonly #tiers: readonly SeriesTier[];
  /** Series of one metric and dimension set: one for each unit. */
  readonly #metrics = new Map<string, Series[]>();
  #seriesCount = 0;
  #agedAtMs = 0;

  constructor(options: MinuteSeriesOptions) {
    this.#options = options;
    this.#tiers = options.tiers ?? defaultTiers;
  }

  /** For hot paths: holds the series and its current point. */
  recorder(key: SeriesKey, resolutionMs: ResolutionMs = 60_000): SeriesRecorder {
    const clock = this.#options.clock;
    let series = this.#seriesFor(key, resolutionMs);
    let point: SeriesPoint | null = null;
    return {
      record: (value) => {
        const nowMs = clock.epochMs();
        if (point === null || nowMs >= point.startMs + point.periodMs || nowMs < point.startMs || series.isEvicted) {
          if (series.isEvicted) series = this.#seriesFor(key, resolutionMs);
          point = this.#pointFor(series, nowMs);
          if (point === null) return;
        } else series.markChanged(point);
        point.add(value, 1);
      },
    };
  }

  /** `count` samples of the same value. A time that no tier keeps any more is ignored, as CloudWatch does. */
  record(key: SeriesKey, sample: { readonly value: number; readonly count: number }, options: SampleOptions): void {
    const series = this.#seriesFor(key, options.resolutionMs);
    this.#pointFor(series, options.timestampMs)?.add(sample.value, sample.count);
  }

  recordSet(key: SeriesKey, set: StatisticSet, options: SampleOptions): void {
    const series = this.#seriesFor(key, options.resolutionMs);
    this.#pointFor(series, options.timestampMs)?.addSet(set);
  }

  /** Metrics that have points; one entry for each unit. */
  list(filter: SeriesFilter): readonly SeriesKey[] {
    const found: SeriesKey[] = [];
    for (const ofUnits of this.#metrics.values()) {
      for (const series of ofUnits) if (matches(series, filter)) found.push(series.key);
    }
    return found;
  }

  /** Ascending in time; several units give several datapoints of one time. Points wider than the period are left out. */
  query(name: MetricName, query: PointsQuery): readonly Datapoint[] {
    const datapoints: Datapoint[] = [];
    for (const series of this.#metrics.get(metricId(name)) ?? []) {
      if (query.unit === null || query.unit === series.key.unit) datapoints.push(...datapointsOf(series, query));
    }
    return datapoints.sort((a, b) => a.startMs - b.startMs);
  }

  /** What changed since the last call: to be written, keyed by series, `periodMs` and `startMs`. */
  drain(): readonly StoredPoint[] {
    const stored: StoredPoint[] = [];
    for (const ofUnits of this.#metrics.values()) {
      for (const series of ofUnits) {
        for (const point of series.takeChanged()) stored.push(storedPoint(series.key, series.resolutionMs, point));
      }
    }
    return stored;
  }

  /** Puts persisted points back; one that exists is replaced. */
  load(points: Iterable<StoredPoint>): void {
    for (const stored of points) {
      this.#seriesFor(stored.key, stored.resolutionMs).restore(SeriesPoint.restore(stored));
    }
    this.#age(this.#options.clock.epochMs());
  }

  /** Persisted points of a width that began before that time are over: in memory they were merged into wider ones. */
  expired(): readonly { readonly periodMs: number; readonly beforeMs: number }[] {
    const nowMs = this.#options.clock.epochMs();
    return this.#tiers.map((tier) => ({ periodMs: tier.periodMs, beforeMs: nowMs - tier.retentionMs }));
  }

  #pointFor(series: Series, timestampMs: number): SeriesPoint | null {
    const nowMs = this.#options.clock.epochMs();
    if (nowMs - this.#agedAtMs >= agingIntervalMs) this.#age(nowMs);
    return series.pointAt(timestampMs, nowMs);
  }

  #seriesFor(key: SeriesKey, resolutionMs: ResolutionMs): Series {
    const id = metricId(key);
    let ofUnits = this.#metrics.get(id);
    const found = ofUnits?.find((series) => series.key.unit === key.unit);
    if (found !== undefined) return found;
    if (this.#seriesCount >= this.#options.seriesMax) this.#evictIdle();
    ofUnits = this.#metrics.get(id) ?? [];
    this.#metrics.set(id, ofUnits);
    const made = new Series({ ...key, dimensions: sortedDimensions(key.dimensions) }, resolutionMs, this.#tiers);
    made.lastRecordedMs = this.#options.clock.epochMs();
    ofUnits.push(made);
    this.#seriesCount++;
    return made;
  }

  #age(nowMs: number): void {
    this.#agedAtMs = nowMs;
    let byteLength = 0;
    for (const series of this.#all()) {
      series.age(nowMs);
      byteLength += series.byteLength;
    }
    if (byteLength > this.#options.bytesMax) this.#dropOldest();
  }

  /** Drops whole hours, oldest first, until a tenth is free. */
  #dropOldest(): void {
    const hours = new Map<number, number>();
    for (const series of this.#all()) series.addBytesByHour(hours);
    let byteLength = 0;
    for (const bytes of hours.values()) byteLength += bytes;
    for (const hour of [...hours.keys()].sort((a, b) => a - b)) {
      if (byteLength <= this.#options.bytesMax * 0.9) return;
      byteLength -= hours.get(hour) as number;
      for (const series of this.#all()) series.dropBefore((hour + 1) * 3_600_000);
    }
  }

  /** A hundredth at a time, so that many new series do not each search for a victim. */
  #evictIdle(): void {
    const idle = this.#all().sort((a, b) => a.lastRecordedMs - b.lastRecordedMs);
    for (const series of idle.slice(0, Math.max(1, Math.ceil(idle.length / 100)))) {
      series.isEvicted = true;
      this.#seriesCount--;
      const id = metricId(series.key);
      const left = (this.#metrics.get(id) ?? []).filter((other) => other !== series);
      if (left.length === 0) this.#metrics.delete(id);
      else this.#metrics.set(id, left);
    }
  }

  #all(): Series[] {
    return [...this.#metrics.values()].flat();
  }
}

function storedPoint(key: SeriesKey, resolutionMs: ResolutionMs, point: SeriesPoint): StoredPoint {
  const { periodMs, startMs, sampleCount, sum, minimum, maximum } = point;
  const histogram = point.encodeHistogram();
  return { key, resolutionMs, periodMs, startMs, sampleCount, sum, minimum, maximum, histogram };
}

function matches(series: Series, filter: SeriesFilter): boolean {
  const { key } = series;
  if (series.isEmpty) return false;
  if (filter.namespace !== null && filter.namespace !== key.namespace) return false;
  if (filter.metricName !== null && filter.metricName !== key.metricName) return false;
  if (filter.recordedSinceMs !== null && series.lastRecordedMs < filter.recordedSinceMs) return false;
  return filter.dimensions.every(({ name, value }) =>
    key.dimensions.some((dimension) => dimension.name === name && (value === null || dimension.value === value)),
  );
}

function datapointsOf(series: Series, { startMs, endMs, periodMs }: PointsQuery): readonly Datapoint[] {
  const periods = new Map<number, SeriesPoint>();
  for (const point of series.pointsIn(startMs, endMs, periodMs)) {
    const periodStartMs = startMs + Math.floor((point.startMs - startMs) / periodMs) * periodMs;
    let merged = periods.get(periodStartMs);
    if (merged === undefined) {
      merged = new SeriesPoint(periodStartMs, periodMs);
      periods.set(periodStartMs, merged);
    }
    merged.merge(point);
  }
  return [...periods.values()]
    .filter((point) => point.sampleCount > 0)
    .map((point) => asDatapoint(point, series.key.unit));
}

function asDatapoint(point: SeriesPoint, unit: string): Datapoint {
  const { startMs, sampleCount, sum, minimum, maximum } = point;
  const percentile = (fraction: number) => point.percentile(fraction);
  return { startMs, unit, sampleCount, sum, minimum, maximum, percentile };
}
