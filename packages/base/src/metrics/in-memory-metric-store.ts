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
import { MetricPoint } from "./metric-point.ts";
import { MetricSeries, metricId, sortedDimensions } from "./series-store.ts";
import { tierCutoffMs, defaultTiers, type SeriesTier } from "./series-tiers.ts";

export interface InMemoryMetricStoreOptions {
  readonly clock: Clock;
  /** Maximum number of series. Above it, the least recently recorded series are evicted. */
  readonly seriesMax: number;
  /** Limit on the estimated memory of all points. Above it, the oldest hours are dropped. */
  readonly bytesMax: number;
  /**
   * Limit on the estimated memory of the names of all series. Above it, the least recently recorded series are evicted.
   * Defaults to half of `bytesMax`.
   */
  readonly namesBytesMax?: number;
  /** Defaults to CloudWatch's tiers. */
  readonly tiers?: readonly SeriesTier[];
  /**
   * Returns true for a namespace that clients may write to. If client series are more than half of all series, or use
   * more than half of the memory for names, only they are evicted. Without this, a client could evict the platform's
   * own series. Default: false for every namespace.
   */
  readonly isWritableByClients?: (namespace: string) => boolean;
}

/**
 * Minimum interval between two aging rounds. A round visits all series, merges or drops their old points, and enforces
 * the limits.
 */
const agingIntervalMs = 60_000;
/** Number of series that an aging round visits with each recorded sample. */
const agedPerSample = 64;
/** Number of series that an aging round visits in one event loop tick, which takes less than a millisecond. */
const agedPerTick = 1000;
/**
 * Number of series that one eviction compares to find the least recently recorded ones, and number of series that it
 * evicts.
 */
const comparedMax = 5000;
const evictedMax = 50;
/** Number of metrics that one batch of a listing examines, which takes a fraction of a millisecond. */
const listedPerBatch = 500;
/** Maximum number of points that are restored between two checks of the limits. */
const restoredMax = 100_000;

/**
 * A metric store in memory. Another module persists the store's changes (`takeChanges`) and loads them after a restart
 * (`load`).
 */
export class InMemoryMetricStore implements MetricStore {
  readonly #options: InMemoryMetricStoreOptions;
  readonly #tiers: readonly SeriesTier[];
  /** The series of each metric and exact set of dimensions, one for each unit. */
  readonly #metrics = new Map<string, MetricSeries[]>();
  /** All series in `#metrics`, by their number. */
  readonly #byNumber = new Map<number, MetricSeries>();
  /** Series with points that are not persisted yet. */
  readonly #changed = new Set<MetricSeries>();
  /** Numbers of persisted series that were evicted. */
  #evicted: number[] = [];
  #nextNumber = 1;
  #agedAtMs = 0;
  #clientSeriesCount = 0;
  #identityBytes = 0;
  #clientIdentityBytes = 0;
  /** Iterator with which the next search for series to evict continues. */
  #candidates: Iterator<MetricSeries> | null = null;
  /** State of the current aging round: the series that it has not yet visited, and the bytes of the visited ones. */
  #round: { readonly left: Iterator<MetricSeries>; byteLength: number } | null = null;
  /** Time before which points were dropped because of the memory limit since the last `takeExpired`. */
  #droppedBeforeMs = 0;
  /** Number of points that a limit has dropped before they were persisted. */
  #droppedCount = 0;

  constructor(options: InMemoryMetricStoreOptions) {
    this.#options = options;
    this.#tiers = options.tiers ?? defaultTiers;
  }

  /**
   * Returns a recorder that refers to the series and to its current point. The series is created with the first sample,
   * because many metrics never receive one.
   */
  recorder(key: SeriesKey, resolutionMs: ResolutionMs = 60_000): SeriesRecorder {
    const clock = this.#options.clock;
    let series: MetricSeries | null = null;
    let point: MetricPoint | null = null;
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
   * Yields the changes since the last call, in batches of about `countMax` points, and marks them as unchanged. Omits
   * the points that cover `openAtMs`; null omits none. If the caller cannot write a batch, it must pass the batch to
   * `putBack`.
   */
  *takeChanges(openAtMs: number | null, countMax: number): Generator<SeriesChanges> {
    let [opened, points, evicted]: [StoredSeries[], StoredPoint[], number[]] = [[], [], this.#evicted];
    this.#evicted = [];
    for (const series of this.#changed.values().toArray()) {
      if (series.isEvicted) continue;
      series.age(this.#options.clock.epochMs());
      const acquired = series.takeChanged(openAtMs);
      if (acquired.length > 0 && !series.isStored) {
        series.isStored = true;
        opened.push(series.identity);
      }
      for (const point of acquired) points.push(storedPoint(series.identity.number, point));
      if (points.length < countMax) continue;
      yield { opened, points, evicted };
      [opened, points, evicted] = [[], [], []];
    }
    if (points.length > 0 || evicted.length > 0) yield { opened, points, evicted };
  }

  /** Adds changes that could not be written to the output of the next `takeChanges`. */
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
   * Merges and drops the old points of all series. Returns a time for each point width. Once all changes are written,
   * the persisted points before that time may be deleted.
   */
  async takeExpired(
    nextTick: () => Promise<void>,
  ): Promise<readonly { readonly periodMs: number; readonly beforeMs: number }[]> {
    const nowMs = this.#options.clock.epochMs();
    this.#beginRound(nowMs);
    while (this.#round !== null) {
      this.#ageSeries(nowMs, agedPerTick);
      await nextTick();
    }
    const droppedBeforeMs = this.#droppedBeforeMs;
    this.#droppedBeforeMs = 0;
    return this.#tiers.map(({ periodMs }, index) => {
      return { periodMs, beforeMs: Math.max(droppedBeforeMs, tierCutoffMs(this.#tiers, index, nowMs)) };
    });
  }

  /** Returns the number of points that a limit has dropped before they were persisted, since the last call. */
  takeDroppedCount(): number {
    const count = this.#droppedCount;
    this.#droppedCount = 0;
    return count;
  }

  /**
   * Returns the width of the points into which points of `periodMs` are merged. For the last tier, returns `periodMs`.
   */
  blockMs(periodMs: number): number {
    const next = this.#tiers.findIndex((tier) => tier.periodMs === periodMs) + 1;
    return this.#tiers[next]?.periodMs ?? periodMs;
  }

  /**
   * Loads the persisted contents. Must be called before anything is recorded. A later state of a point replaces an
   * earlier one.
   */
  async load({ series, points, nextNumber }: StoredContents): Promise<void> {
    this.#nextNumber = nextNumber;
    for (const identity of series) {
      const former = this.#find(identity.key);
      // A process evicted the earlier series and ended before it wrote the eviction.
      if (former !== undefined) this.#evict(former);
      this.#open(identity).isStored = true;
      this.#reserveNumber(identity.number);
    }
    let restored = 0;
    for await (const part of points) {
      for (const stored of part) {
        this.#byNumber.get(stored.seriesNumber)?.restore(MetricPoint.restore(stored));
        this.#reserveNumber(stored.seriesNumber);
        if (++restored % restoredMax === 0) this.#age(this.#options.clock.epochMs());
      }
    }
    this.#age(this.#options.clock.epochMs());
    for (const each of this.#all()) if (each.isEmpty) this.#evict(each);
  }

  /**
   * Excludes a number from later assignment. A damaged database may contain points of a series that it does not list. A
   * new series with that series' number would get these points.
   */
  #reserveNumber(number: number): void {
    this.#nextNumber = Math.max(this.#nextNumber, number + 1);
  }

  #pointFor(series: MetricSeries, timestampMs: number): MetricPoint | null {
    const nowMs = this.#options.clock.epochMs();
    if (nowMs - this.#agedAtMs >= agingIntervalMs) this.#beginRound(nowMs);
    if (this.#round !== null) this.#ageSeries(nowMs, agedPerSample);
    return series.pointAt(timestampMs, nowMs);
  }

  #seriesFor(key: SeriesKey, resolutionMs: ResolutionMs): MetricSeries {
    const found = this.#find(key);
    if (found !== undefined) return found;
    const identity = { number: this.#nextNumber++, key, resolutionMs };
    const created = this.#open({ ...identity, key: { ...key, dimensions: sortedDimensions(key.dimensions) } });
    created.lastRecordedMs = this.#options.clock.epochMs();
    return created;
  }

  #find(key: SeriesKey): MetricSeries | undefined {
    return this.#metrics.get(metricId(key))?.find((series) => series.key.unit === key.unit);
  }

  #open(identity: StoredSeries): MetricSeries {
    const created = new MetricSeries(identity, this.#tiers, this.#changed);
    while (this.#byNumber.size > 0 && this.#isFull(created)) this.#evictIdle();
    const id = metricId(identity.key);
    const ofUnits = this.#metrics.get(id) ?? [];
    this.#metrics.set(id, ofUnits);
    ofUnits.push(created);
    this.#byNumber.set(identity.number, created);
    this.#count(created, 1);
    return created;
  }

  #isFull(added: MetricSeries): boolean {
    if (this.#byNumber.size >= this.#options.seriesMax) return true;
    return this.#identityBytes + added.identityBytes > this.#identityBytesMax;
  }

  get #identityBytesMax(): number {
    return this.#options.namesBytesMax ?? this.#options.bytesMax / 2;
  }

  /** Adds a series to the totals (`by` = 1) or subtracts it (`by` = -1). */
  #count(series: MetricSeries, by: 1 | -1): void {
    const bytes = by * series.identityBytes;
    this.#identityBytes += bytes;
    if (!this.#isWritableByClients(series)) return;
    this.#clientSeriesCount += by;
    this.#clientIdentityBytes += bytes;
  }

  #age(nowMs: number): void {
    this.#beginRound(nowMs);
    this.#ageSeries(nowMs, Infinity);
  }

  #beginRound(nowMs: number): void {
    this.#agedAtMs = nowMs;
    this.#round = { left: this.#byNumber.values(), byteLength: 0 };
  }

  #ageSeries(nowMs: number, countMax: number): void {
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
      for (const series of this.#all()) this.#droppedCount += series.dropBefore(this.#droppedBeforeMs);
    }
  }

  /**
   * Evicts several of the least recently recorded series at once, so that not every new series starts a search.
   * Compares at most `comparedMax` series, which bounds the time. The next search continues with other series.
   */
  #evictIdle(): void {
    const onlyAnybodys =
      this.#clientSeriesCount > this.#options.seriesMax / 2 || this.#clientIdentityBytes > this.#identityBytesMax / 2;
    const found: MetricSeries[] = [];
    for (let looked = 0; looked < Math.min(this.#byNumber.size, comparedMax); looked++) {
      const series = this.#nextCandidate();
      if (!onlyAnybodys || this.#isWritableByClients(series)) found.push(series);
    }
    const idle = found.sort((a, b) => a.lastRecordedMs - b.lastRecordedMs);
    const count = Math.min(evictedMax, Math.max(1, Math.ceil(idle.length / 100)));
    for (const series of idle.slice(0, count)) this.#evict(series);
  }

  #nextCandidate(): MetricSeries {
    this.#candidates ??= this.#byNumber.values();
    let { done, value } = this.#candidates.next();
    if (done === true) {
      this.#candidates = this.#byNumber.values();
      ({ done, value } = this.#candidates.next());
    }
    return value as MetricSeries;
  }

  #isWritableByClients({ key }: MetricSeries): boolean {
    return this.#options.isWritableByClients?.(key.namespace) ?? false;
  }

  #evict(series: MetricSeries): void {
    const { number, key } = series.identity;
    series.isEvicted = true;
    this.#droppedCount += series.changedCount;
    if (series.isStored) this.#evicted.push(number);
    if (this.#byNumber.delete(number)) this.#count(series, -1);
    this.#changed.delete(series);
    const id = metricId(key);
    const left = (this.#metrics.get(id) ?? []).filter((other) => other !== series);
    if (left.length === 0) this.#metrics.delete(id);
    else this.#metrics.set(id, left);
  }

  #all(): MetricSeries[] {
    return [...this.#byNumber.values()];
  }
}

function storedPoint(seriesNumber: number, point: MetricPoint): StoredPoint {
  const { periodMs, startMs, sampleCount, sum, minimum, maximum } = point;
  const histogram = point.encodeHistogram();
  return { seriesNumber, periodMs, startMs, sampleCount, sum, minimum, maximum, histogram };
}

/** Returns whether a series has points and matches the filter. */
function isListed(series: MetricSeries, filter: SeriesFilter): boolean {
  const { key } = series;
  if (series.isEmpty) return false;
  if (filter.namespace !== null && filter.namespace !== key.namespace) return false;
  if (filter.metricName !== null && filter.metricName !== key.metricName) return false;
  if (filter.recordedSinceMs !== null && series.lastRecordedMs < filter.recordedSinceMs) return false;
  return filter.dimensions.every(({ name, value }) =>
    key.dimensions.some((dimension) => dimension.name === name && (value === null || dimension.value === value)),
  );
}

function datapointsOf(series: MetricSeries, { startMs, endMs, periodMs }: PointsQuery): readonly Datapoint[] {
  const periods = new Map<number, MetricPoint>();
  for (const point of series.pointsIn(startMs, endMs, periodMs)) {
    const periodStartMs = startMs + Math.floor((point.startMs - startMs) / periodMs) * periodMs;
    let merged = periods.get(periodStartMs);
    if (merged === undefined) {
      merged = new MetricPoint(periodStartMs, periodMs);
      periods.set(periodStartMs, merged);
    }
    merged.merge(point);
  }
  return [...periods.values()]
    .filter((point) => point.sampleCount > 0)
    .map((point) => asDatapoint(point, series.key.unit));
}

function asDatapoint(point: MetricPoint, unit: string): Datapoint {
  const { startMs, sampleCount, sum, minimum, maximum } = point;
  const percentile = (fraction: number) => point.percentile(fraction);
  return { startMs, unit, sampleCount, sum, minimum, maximum, percentile };
}
