/** A metric dimension. The exact set of dimensions identifies a series; their order does not matter. */
export interface Dimension {
  readonly name: string;
  readonly value: string;
}

/** Identity of a series without its unit. */
export interface MetricName {
  readonly namespace: string;
  readonly metricName: string;
  readonly dimensions: readonly Dimension[];
}

export interface SeriesKey extends MetricName {
  /** A unit of CloudWatch: "None", "Microseconds", "Percent", "Count", "Bytes", ... */
  readonly unit: string;
}

/** Width of a series' finest points in milliseconds: one minute, or ten seconds if autoscaling needs them. */
export type ResolutionMs = 10_000 | 60_000;

export interface StatisticSet {
  readonly sampleCount: number;
  readonly sum: number;
  readonly minimum: number;
  readonly maximum: number;
}

/** Statistics of one period of one series. */
export interface Datapoint extends StatisticSet {
  /** Start of the period. */
  readonly startMs: number;
  readonly unit: string;
  /**
   * Returns the value that `fraction` (0 to 1) of the samples do not exceed, within 1.5 %; null if only sums are known.
   */
  percentile(fraction: number): number | null;
}

export interface PointsQuery {
  readonly startMs: number;
  /** Exclusive. */
  readonly endMs: number;
  /** Length of a period in milliseconds. The first period begins at `startMs`. */
  readonly periodMs: number;
  /** Null selects all units. Datapoints with different units are never combined. */
  readonly unit: string | null;
}

export interface SeriesFilter {
  /** Null matches every namespace. */
  readonly namespace: string | null;
  readonly metricName: string | null;
  /** Dimensions that the series must have; a null value matches any value. */
  readonly dimensions: readonly { readonly name: string; readonly value: string | null }[];
  /** Selects only series with a sample since this time; null: all series. */
  readonly recordedSinceMs: number | null;
}

/** The time of a sample. `resolutionMs` applies to the series if the sample is its first one. */
export interface SampleOptions {
  readonly timestampMs: number;
  readonly resolutionMs: ResolutionMs;
}

/** Records frequent samples of one series, without a lookup or an allocation for each sample. */
export interface SeriesRecorder {
  /** Records one sample at the current time. The value must be finite. */
  record(value: number): void;
}

/** A persisted series. Its number is never reused. */
export interface StoredSeries {
  readonly number: number;
  readonly key: SeriesKey;
  readonly resolutionMs: ResolutionMs;
}

/** A persisted point. The newest state of a period replaces the state that was written before. */
export interface StoredPoint extends StatisticSet {
  readonly seriesNumber: number;
  /** Width of this point: the series' resolution, or the period of the tier into which the point was merged. */
  readonly periodMs: number;
  readonly startMs: number;
  /**
   * Encoded distribution of the values. Empty if minimum and maximum describe the values; null if only sums are known.
   */
  readonly histogram: Uint8Array | null;
}

/** Changes to write in one database transaction. */
export interface SeriesChanges {
  /** Series whose first points are among these changes. */
  readonly opened: readonly StoredSeries[];
  readonly points: readonly StoredPoint[];
  /** Numbers of evicted series. Their stored points must be ignored. */
  readonly evicted: readonly number[];
}

/** The persisted contents. The points are in the order in which they were written, one batch at a time. */
export interface StoredContents {
  readonly series: Iterable<StoredSeries>;
  readonly points: Iterable<Iterable<StoredPoint>> | AsyncIterable<Iterable<StoredPoint>>;
  /** Greater than every number that was ever assigned. */
  readonly nextNumber: number;
}
