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
 * A store of metric samples from which clients read statistics of periods. A series has one exact set of dimensions and
 * one unit. A sample is readable at once. A durable store writes samples later, in batches; a process that crashes
 * loses the samples that were not yet written. The store merges old points into wider ones, drops the oldest points,
 * and bounds the number of series and their memory. All implementations are tested with `metric-store.contract.ts`.
 */
export interface MetricStore {
  /**
   * Returns a recorder for frequent samples, which the caller keeps. A metric exists once it has a sample. The default
   * resolution is one minute.
   */
  recorder(key: SeriesKey, resolutionMs?: ResolutionMs): SeriesRecorder;
  /**
   * Records `count` samples of one value. Like CloudWatch, ignores a sample that is older than the retention of all
   * tiers.
   */
  record(key: SeriesKey, sample: { readonly value: number; readonly count: number }, options: SampleOptions): void;
  /** Records samples of which only these statistics are known. The percentiles of the period are null from then on. */
  recordSet(key: SeriesKey, set: StatisticSet, options: SampleOptions): void;
  /**
   * Returns datapoints in ascending order of time, separately for each unit. Omits points that are wider than the
   * period.
   */
  query(name: MetricName, query: PointsQuery): Promise<readonly Datapoint[]>;
  /**
   * Lists each metric of which a series matches the filter, in no particular order. The work for each batch is bounded,
   * so a batch may be empty. Metrics may be added or evicted during the listing. A metric that exists during the whole
   * listing is listed once.
   */
  list(filter: SeriesFilter): AsyncIterable<readonly MetricName[]>;
  /**
   * Stores the finest points of a metric from the next whole minute until `untilMs`, for callers that read periods
   * shorter than the metric's resolution. Does nothing for a metric without samples.
   */
  refine(name: MetricName, untilMs: number): void;
}
