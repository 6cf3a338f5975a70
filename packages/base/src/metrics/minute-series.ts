import type { Clock } from "../core/index.ts";
import type { MetricStore } from "./metric-store.ts";
import type {
  Datapoint,
  MetricName,
  PointsQuery,
  ResolutionMs,
  SampleOptions,
  SeriesChanges,
  SeriesFilter,
  SeriesKey,
  SeriesRecorder,
  StatisticSet,
  StoredContents,
  StoredPoint,
  StoredSeries,
} from "./series.ts";
import { SeriesPoint } from "./series-point.ts";
import { Series, metricId, sortedDimensions } from "./series-store.ts";
import { cutoffMs, defaultTiers, type SeriesTier } from "./series-tiers.ts";

export interface MinuteSeriesOptions {
  readonly clock: Clock;
  /** The least recently recorded series over this number are evicted. */
  readonly seriesMax: number;
  /** Limit of the estimated memory of all points; over it the oldest hours are dropped. */
  readonly bytesMax: number;
  /**
   * Limit of the estimated memory of all series without their points, which their names make up; over it the least recently recorded series
   * are evicted. Defaults to half of `bytesMax`.
   */
  readonly namesBytesMax?: number;
  /** Defaults to CloudWatch's. */
  readonly tiers?: readonly SeriesTier[];
  /**
   * Returns true for namespaces that clients may write to. While their series are more than half of all, or of the memory for names, only
   * they are evicted, so that a client cannot evict the platform's own series. Default: no namespace.
   */
  readonly isAnybodys?: (namespace: string) => boolean;
}

/** Minimum interval between two rounds over all series; a round ages tiers and enforces limits. */
const agingIntervalMs = 60_000;
/** Series aged with each recorded sample during a round. */
const agedPerSample = 64;
/** Series aged in one event loop tick: less than a millisecond of work. */
const agedPerTurn = 1000;
/** Number of series that are compared to find the least recently recorded, and how many of these are evicted. */
const comparedMax = 5000;
const evictedMax = 50;
/** Metrics examined for one batch of a listing: a fraction of a millisecond. */
const listedPerBatch = 500;
/** Points restored between two checks of the limits. */
const restoredMax = 100_000;

/** A metric store in memory. Changes can be taken, persisted and loaded by the next process. */
export class MinuteSeries implements MetricStore {
  readonly #options: MinuteSeriesOptions;
  readonly #tiers: readonly SeriesTier[];
  /** Series of one metric and dimension set: one for each unit. */
  readonly #metrics = new Map<string, Series[]>();
  /** A series is here and in `#metrics`, or evicted. */
  readonly #byNumber = new Map<number, Series>();
  /** Series with points that are not persisted yet. */
  readonly #changed = new Set<Series>();
  /** Numbers of persisted series that were evicted. */
  #evicted: number[] = [];
  #nextNumber = 1;
  #agedAtMs = 0;
  #anybodysCount = 0;
  #identityBytes = 0;
  #anybodysIdentityBytes = 0;
  /** Iterator that the next search for series to evict continues with. */
  #candidates: Iterator<Series> | null = null;
  /** The series that the current round has not reached, and the bytes of those before them. */
  #round: { readonly left: Iterator<Series>; byteLength: number } | null = null;
  /** Time before which points were dropped because of the memory limit; logged once. */
  #droppedBeforeMs = 0;

  constructor(options: MinuteSeriesOptions) {
    this.#options = options;
    this.#tiers = options.tiers ?? defaultTiers;
  }

  /**
   * Returns a recorder that keeps the series and its current point. The series is created with the first sample: many metrics never have
   * one.
   */
  recorder(key: SeriesKey, resolutionMs: ResolutionMs = 60_000): SeriesRecorder {
    const clock = this.#options.clock;
    let series: Series | null = null;
    let point: SeriesPoint | null = null;
    return {
      record: (value) => {
        const nowMs = clock.epochMs();
        const isHeld = point !== null && nowMs < point.startMs + point.periodMs && nowMs >= point.startMs;
        if (!isHeld || series === null || point === null || series.isEvicted) {
          if (series === null || series.isEvicted) series = this.#seriesFor(key, resolutionMs);
          point = this.#pointFor(series, nowMs);
          if (point === null) return;
        } else series.markChanged(point);
        point.add(value, 1);
      },
    };
  }

  record(key: SeriesKey, sample: { readonly value: number; readonly count: number }, options: SampleOptions): void {
    const series = this.#seriesFor(key, options.resolutionMs);
    this.#pointFor(series, options.timestampMs)?.add(sample.value, sample.count);
  }

  recordSet(key: SeriesKey, set: StatisticSet, options: SampleOptions): void {
    const series = this.#seriesFor(key, options.resolutionMs);
    this.#pointFor(series, options.timestampMs)?.addSet(set);
  }

  async *list(filter: SeriesFilter): AsyncGenerator<readonly MetricName[]> {
    let [lookedAt, batch]: [number, MetricName[]] = [0, []];
    for (const ofUnits of this.#metrics.values()) {
      const found = ofUnits.find((series) => isListed(series, filter));
      if (found !== undefined) batch.push(found.key);
      if (++lookedAt % listedPerBatch !== 0) continue;
      yield batch;
      batch = [];
    }
    yield batch;
  }

  async query(name: MetricName, query: PointsQuery): Promise<readonly Datapoint[]> {
    const datapoints: Datapoint[] = [];
    for (const series of this.#metrics.get(metricId(name)) ?? []) {
      if (query.unit === null || query.unit === series.key.unit) datapoints.push(...datapointsOf(series, query));
    }
    return datapoints.sort((a, b) => a.startMs - b.startMs);
  }

  refine(name: MetricName, untilMs: number): void {
    const nowMs = this.#options.clock.epochMs();
    for (const series of this.#metrics.get(metricId(name)) ?? []) series.refine(nowMs, untilMs);
  }

  /**
   * Takes the changes since the last call, in batches of about `countMax` points, each looked up when it is requested. The point that
   * covers `openAtMs` is left for later; null takes all. Changes that cannot be written are put back.
   */
  *takeChanges(openAtMs: number | null, countMax: number): Generator<SeriesChanges> {
    let [opened, points, evicted]: [StoredSeries[], StoredPoint[], number[]] = [[], [], this.#evicted];
    this.#evicted = [];
    for (const series of this.#changed.values().toArray()) {
      if (series.isEvicted) continue;
      series.age(this.#options.clock.epochMs());
      const taken = series.takeChanged(openAtMs);
      if (taken.length > 0 && !series.isStored) {
        series.isStored = true;
        opened.push(series.identity);
      }
      for (const point of taken) points.push(storedPoint(series.identity.number, point));
      if (points.length < countMax) continue;
      yield { opened, points, evicted };
      [opened, points, evicted] = [[], [], []];
    }
    if (points.length > 0 || evicted.length > 0) yield { opened, points, evicted };
  }

  /** Puts back changes that could not be written. */
  putBack({ opened, points, evicted }: SeriesChanges): void {
    this.#evicted.push(...evicted);
    for (const { number } of opened) {
      const series = this.#byNumber.get(number);
      if (series !== undefined) series.isStored = false;
    }
    for (const { seriesNumber, periodMs, startMs } of points) {
      this.#byNumber.get(seriesNumber)?.markChangedAt(periodMs, startMs);
    }
  }

  /**
   * Ages all series and returns, for each width, the time before which persisted points may be deleted once every change was written:
   * they were merged or dropped here.
   */
  async takeExpired(
    turn: () => Promise<void>,
  ): Promise<readonly { readonly periodMs: number; readonly beforeMs: number }[]> {
    const nowMs = this.#options.clock.epochMs();
    this.#beginRound(nowMs);
    while (this.#round !== null) {
      this.#ageSome(nowMs, agedPerTurn);
      await turn();
    }
    const droppedBeforeMs = this.#droppedBeforeMs;
    this.#droppedBeforeMs = 0;
    return this.#tiers.map(({ periodMs }, index) => {
      return { periodMs, beforeMs: Math.max(droppedBeforeMs, cutoffMs(this.#tiers, index, nowMs)) };
    });
  }

  /** Returns the width of the periods in which points of `periodMs` are merged, or expire. */
  blockMs(periodMs: number): number {
    const next = this.#tiers.findIndex((tier) => tier.periodMs === periodMs) + 1;
    return this.#tiers[next]?.periodMs ?? periodMs;
  }

  /** Loads the persisted contents, before anything is recorded. Of two states of one point the later one counts. */
  async load({ series, points, nextNumber }: StoredContents): Promise<void> {
    this.#nextNumber = nextNumber;
    for (const identity of series) {
      const former = this.#find(identity.key);
      // The series was evicted, and the process ended before that was written.
      if (former !== undefined) this.#evict(former);
      this.#open(identity).isStored = true;
      this.#keepFree(identity.number);
    }
    let restored = 0;
    for await (const part of points) {
      for (const stored of part) {
        this.#byNumber.get(stored.seriesNumber)?.restore(SeriesPoint.restore(stored));
        this.#keepFree(stored.seriesNumber);
        if (++restored % restoredMax === 0) this.#age(this.#options.clock.epochMs());
      }
    }
    this.#age(this.#options.clock.epochMs());
    for (const each of this.#all()) if (each.isEmpty) this.#evict(each);
  }

  /** Never reuses the number of a series whose points exist: a damaged database may have points without their series. */
  #keepFree(number: number): void {
    this.#nextNumber = Math.max(this.#nextNumber, number + 1);
  }

  #pointFor(series: Series, timestampMs: number): SeriesPoint | null {
    const nowMs = this.#options.clock.epochMs();
    if (nowMs - this.#agedAtMs >= agingIntervalMs) this.#beginRound(nowMs);
    if (this.#round !== null) this.#ageSome(nowMs, agedPerSample);
    return series.pointAt(timestampMs, nowMs);
  }

  #seriesFor(key: SeriesKey, resolutionMs: ResolutionMs): Series {
    const found = this.#find(key);
    if (found !== undefined) return found;
    const identity = { number: this.#nextNumber++, key, resolutionMs };
    const made = this.#open({ ...identity, key: { ...key, dimensions: sortedDimensions(key.dimensions) } });
    made.lastRecordedMs = this.#options.clock.epochMs();
    return made;
  }

  #find(key: SeriesKey): Series | undefined {
    return this.#metrics.get(metricId(key))?.find((series) => series.key.unit === key.unit);
  }

  #open(identity: StoredSeries): Series {
    const made = new Series(identity, this.#tiers, this.#changed);
    while (this.#byNumber.size > 0 && this.#isFull(made)) this.#evictIdle();
    const id = metricId(identity.key);
    const ofUnits = this.#metrics.get(id) ?? [];
    this.#metrics.set(id, ofUnits);
    ofUnits.push(made);
    this.#byNumber.set(identity.number, made);
    this.#count(made, 1);
    return made;
  }

  #isFull(added: Series): boolean {
    if (this.#byNumber.size >= this.#options.seriesMax) return true;
    return this.#identityBytes + added.identityBytes > this.#identityBytesMax;
  }

  get #identityBytesMax(): number {
    return this.#options.namesBytesMax ?? this.#options.bytesMax / 2;
  }

  /** Adds a series to the totals, or removes it. */
  #count(series: Series, by: 1 | -1): void {
    const bytes = by * series.identityBytes;
    this.#identityBytes += bytes;
    if (!this.#isAnybodys(series)) return;
    this.#anybodysCount += by;
    this.#anybodysIdentityBytes += bytes;
  }

  #age(nowMs: number): void {
    this.#beginRound(nowMs);
    this.#ageSome(nowMs, Infinity);
  }

  #beginRound(nowMs: number): void {
    this.#agedAtMs = nowMs;
    this.#round = { left: this.#byNumber.values(), byteLength: 0 };
  }

  #ageSome(nowMs: number, countMax: number): void {
    const round = this.#round;
    if (round === null) return;
    for (let count = 0; count < countMax; count++) {
      const { done, value: series } = round.left.next();
      if (done === true) {
        this.#round = null;
        if (round.byteLength > this.#options.bytesMax) this.#dropOldest();
        return;
      }
      series.age(nowMs);
      round.byteLength += series.byteLength;
    }
  }

  /** Drops whole hours, oldest first, until a tenth of the limit is free. */
  #dropOldest(): void {
    const hours = new Map<number, number>();
    for (const series of this.#all()) series.addBytesByHour(hours);
    let byteLength = 0;
    for (const bytes of hours.values()) byteLength += bytes;
    for (const hour of [...hours.keys()].sort((a, b) => a - b)) {
      if (byteLength <= this.#options.bytesMax * 0.9) return;
      byteLength -= hours.get(hour) as number;
      this.#droppedBeforeMs = (hour + 1) * 3_600_000;
      for (const series of this.#all()) series.dropBefore(this.#droppedBeforeMs);
    }
  }

  /**
   * Evicts several series at once, so that not every new series starts a search, and compares at most some thousands, so that no search
   * takes long. The next search compares others.
   */
  #evictIdle(): void {
    const onlyAnybodys =
      this.#anybodysCount > this.#options.seriesMax / 2 || this.#anybodysIdentityBytes > this.#identityBytesMax / 2;
    const found: Series[] = [];
    for (let looked = 0; looked < Math.min(this.#byNumber.size, comparedMax); looked++) {
      const series = this.#nextCandidate();
      if (!onlyAnybodys || this.#isAnybodys(series)) found.push(series);
    }
    const idle = found.sort((a, b) => a.lastRecordedMs - b.lastRecordedMs);
    const count = Math.min(evictedMax, Math.max(1, Math.ceil(idle.length / 100)));
    for (const series of idle.slice(0, count)) this.#evict(series);
  }

  #nextCandidate(): Series {
    this.#candidates ??= this.#byNumber.values();
    let { done, value } = this.#candidates.next();
    if (done === true) {
      this.#candidates = this.#byNumber.values();
      ({ done, value } = this.#candidates.next());
    }
    return value as Series;
  }

  #isAnybodys({ key }: Series): boolean {
    return this.#options.isAnybodys?.(key.namespace) ?? false;
  }

  #evict(series: Series): void {
    const { number, key } = series.identity;
    series.isEvicted = true;
    if (series.isStored) this.#evicted.push(number);
    if (this.#byNumber.delete(number)) this.#count(series, -1);
    this.#changed.delete(series);
    const id = metricId(key);
    const left = (this.#metrics.get(id) ?? []).filter((other) => other !== series);
    if (left.length === 0) this.#metrics.delete(id);
    else this.#metrics.set(id, left);
  }

  #all(): Series[] {
    return [...this.#byNumber.values()];
  }
}

function storedPoint(seriesNumber: number, point: SeriesPoint): StoredPoint {
  const { periodMs, startMs, sampleCount, sum, minimum, maximum } = point;
  const histogram = point.encodeHistogram();
  return { seriesNumber, periodMs, startMs, sampleCount, sum, minimum, maximum, histogram };
}

/** Returns whether a series has points and matches the filter. */
function isListed(series: Series, filter: SeriesFilter): boolean {
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
