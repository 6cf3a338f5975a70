/** A metric dimension. A series is identified by its exact set of dimensions, in any order. */
export interface Dimension {
  readonly name: string;
  readonly value: string;
}

/** Identity of a series apart from its unit. */
export interface MetricName {
  readonly namespace: string;
  readonly metricName: string;
  readonly dimensions: readonly Dimension[];
}

export interface SeriesKey extends MetricName {
  /** A unit of CloudWatch: "None", "Microseconds", "Percent", "Count", "Bytes", ... */
  readonly unit: string;
}

/** Width of a series' finest points: one minute, or ten seconds where autoscaling needs them. */
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
  /** Returns the value below which `fraction` (0..1) of the samples lie, within 1.5 %; null when only sums are known. */
  percentile(fraction: number): number | null;
}

export interface PointsQuery {
  readonly startMs: number;
  /** Exclusive end. */
  readonly endMs: number;
  /** Length of a period; the first one begins at `startMs`. */
  readonly periodMs: number;
  /** Null selects every unit; datapoints of different units are never added up. */
  readonly unit: string | null;
}

export interface SeriesFilter {
  /** Null matches all. */
  readonly namespace: string | null;
  readonly metricName: string | null;
  /** Dimensions that the series must have; a null value matches any value. */
  readonly dimensions: readonly { readonly name: string; readonly value: string | null }[];
  /** Only series with a sample since then. */
  readonly recordedSinceMs: number | null;
}

/** The time of a sample, and the resolution of the series if this sample is its first. */
export interface SampleOptions {
  readonly timestampMs: number;
  readonly resolutionMs: ResolutionMs;
}

/** Records samples of one series on hot paths, without a look-up or an allocation per sample. */
export interface SeriesRecorder {
  /** Records one sample at the current time. NaN and infinities are a bug of the caller. */
  record(value: number): void;
}

/** A persisted series. Its number is never reused. */
export interface StoredSeries {
  readonly number: number;
  readonly key: SeriesKey;
  readonly resolutionMs: ResolutionMs;
}

/** A persisted point: the newest state of a period replaces the one written before. */
export interface StoredPoint extends StatisticSet {
  readonly seriesNumber: number;
  /** Width of this point: the series' resolution, or that of the tier it was merged into. */
  readonly periodMs: number;
  readonly startMs: number;
  /** Encoded distribution of the values; empty when min and max describe them, null when only sums are known. */
  readonly histogram: Uint8Array | null;
}

/** Changes to write in one database transaction. */
export interface SeriesChanges {
  /** Series whose first points are among these changes. */
  readonly opened: readonly StoredSeries[];
  readonly points: readonly StoredPoint[];
  /** Numbers of evicted series; their stored points are to be ignored. */
  readonly evicted: readonly number[];
}

/** The persisted contents; points in the order in which they were written, one batch at a time. */
export interface StoredContents {
  readonly series: Iterable<StoredSeries>;
  readonly points: Iterable<Iterable<StoredPoint>> | AsyncIterable<Iterable<StoredPoint>>;
  /** Greater than every number ever assigned. */
  readonly nextNumber: number;
}
