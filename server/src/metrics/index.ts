/**
 * Numbers about what happens: instruments that Prometheus scrapes, and series of one-minute statistics that CloudWatch's API,
 * autoscaling and the console read. Nothing here does IO but the reading of /proc by `createHostMetrics`.
 */
export type {
  Datapoint,
  Dimension,
  MetricName,
  PointsQuery,
  ResolutionMs,
  SeriesFilter,
  SeriesKey,
  SeriesRecorder,
  StatisticSet,
  StoredPoint,
} from "./series.ts";
