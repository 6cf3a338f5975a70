import type {
  Datapoint,
  MetricName,
  PointsQuery,
  ResolutionMs,
  SampleOptions,
  SeriesFilter,
  SeriesKey,
  SeriesRecorder,
  StatisticSet,
} from "./series.ts";

/**
 * A store of metric samples from which clients read statistics of periods. A series has one exact set of dimensions and one unit. A sample
 * is readable at once. A durable store writes samples later, in batches; a process that dies loses the samples that were not yet written.
 * The store merges old points into wider ones, drops the oldest, and bounds the number of series and their memory. Implementations pass
 * `metric-store.contract.ts`.
 */
export interface MetricStore {
  /**
   * Returns a recorder for hot paths, which the caller keeps. A metric exists from its first sample on. Resolution of one minute by
   * default.
   */
  recorder(key: SeriesKey, resolutionMs?: ResolutionMs): SeriesRecorder;
  /** Records `count` samples of one value. Ignores a time older than every tier keeps, as CloudWatch does. */
  record(key: SeriesKey, sample: { readonly value: number; readonly count: number }, options: SampleOptions): void;
  /** Records samples of which only these statistics are known. Percentiles of the period are null from then on. */
  recordSet(key: SeriesKey, set: StatisticSet, options: SampleOptions): void;
  /** Returns datapoints ascending in time, one for each unit. Points wider than the period are left out. */
  query(name: MetricName, query: PointsQuery): Promise<readonly Datapoint[]>;
  /**
   * Lists each metric of which a series matches the filter, in no order. The work for a batch is bounded: a batch may be empty. Metrics may
   * come and go meanwhile; one that is there from beginning to end is listed once.
   */
  list(filter: SeriesFilter): AsyncIterable<readonly MetricName[]>;
  /**
   * Keeps the finest points of a metric from the next whole minute until `untilMs`, for callers that read shorter periods than the
   * metric's own. Does nothing for a metric without samples.
   */
  refine(name: MetricName, untilMs: number): void;
}
