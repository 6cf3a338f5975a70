/** A metric dimension. A series is identified by its exact set of dimensions, whatever their order. */
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
  /** CloudWatch's unit words: "None", "Microseconds", "Percent", "Count", "Bytes", ... */
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

/** What was recorded in one period of one series. */
export interface Datapoint extends StatisticSet {
  /** Start of the period. */
  readonly startMs: number;
  readonly unit: string;
  /** The value below which `fraction` (0..1) of the samples lie, within 1.5 %; null when only sums are known. */
  percentile(fraction: number): number | null;
}

export interface PointsQuery {
  readonly startMs: number;
  /** Exclusive. */
  readonly endMs: number;
  /** Periods begin at `startMs` and repeat from there. */
  readonly periodMs: number;
  /** null asks for every unit; datapoints of different units are never added up. */
  readonly unit: string | null;
}

export interface SeriesFilter {
  /** null matches all. */
  readonly namespace: string | null;
  readonly metricName: string | null;
  /** Every one of these must be among the series' dimensions; a null value matches any. */
  readonly dimensions: readonly { readonly name: string; readonly value: string | null }[];
  /** Only series with a sample since then. */
  readonly recordedSinceMs: number | null;
}

/** When a sample was taken, and the resolution of a series that begins with it. */
export interface SampleOptions {
  readonly timestampMs: number;
  readonly resolutionMs: ResolutionMs;
}

/** A series held for recording on a hot path: no look-up, no allocation per sample. */
export interface SeriesRecorder {
  /** One sample, now. NaN and infinities are a caller's bug. */
  record(value: number): void;
}

/** A series as it is persisted. Its number is never given to another series. */
export interface StoredSeries {
  readonly number: number;
  readonly key: SeriesKey;
  readonly resolutionMs: ResolutionMs;
}

/** A point as it is persisted: the newest state of one period of one series replaces the one written before. */
export interface StoredPoint extends StatisticSet {
  readonly seriesNumber: number;
  /** Width of this point: the series' resolution, or that of the tier it was merged into. */
  readonly periodMs: number;
  readonly startMs: number;
  /** Opaque distribution of the values; empty when min and max say all, null when only sums are known. */
  readonly histogram: Uint8Array | null;
}

/** What is to be written with one commit. */
export interface SeriesChanges {
  /** Whose first points these are. */
  readonly opened: readonly StoredSeries[];
  readonly points: readonly StoredPoint[];
  /** Numbers of series that are no more; what is still stored of their points means nothing. */
  readonly evicted: readonly number[];
}

/** What was persisted; points in the order in which they were written, a part of them at a time. */
export interface StoredContents {
  readonly series: Iterable<StoredSeries>;
  readonly points: Iterable<Iterable<StoredPoint>> | AsyncIterable<Iterable<StoredPoint>>;
  /** Above every number that was ever given. */
  readonly nextNumber: number;
}
