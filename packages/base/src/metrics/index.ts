/**
 * Metrics: instruments that Prometheus scrapes, and series of one-minute statistics that CloudWatch's API, autoscaling and the console
 * read. Nothing here does I/O except `createHostMetrics`, which reads /proc.
 */
export type {
  Datapoint,
  Dimension,
  MetricName,
  PointsQuery,
  ResolutionMs,
  SampleOptions,
  SeriesChanges,
  SeriesFilter,
  SeriesKey,
  SeriesRecorder,
  StatisticSet,
  StoredPoint,
  StoredSeries,
} from "./series.ts";
export { createGpuMetrics } from "./gpu-metrics.ts";
export { createHostMetrics } from "./host-metrics.ts";
export { createInferenceMetrics, createPinnedMemoryMetrics } from "./inference-metrics.ts";
export { ModelFamilies, type FamilyLimits, type TakeCells } from "./model-families.ts";
export type { MetricStore } from "./metric-store.ts";
export { MinuteSeries, type MinuteSeriesOptions } from "./minute-series.ts";
export { MetricRegistry, type CounterRow, type Labels } from "./registry.ts";
export { printSeries } from "./series-exposition.ts";
