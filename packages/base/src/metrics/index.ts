/**
 * Metrics for Prometheus, and a store of one-minute statistics for CloudWatch's API, autoscaling and the console. Only
 * `createHostMetrics` does I/O: it reads /proc.
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
export { CustomMetricFamilies, type CustomMetricLimits, type AllocateSharedCells } from "./custom-metric-families.ts";
export type { MetricStore } from "./metric-store.ts";
export { InMemoryMetricStore, type InMemoryMetricStoreOptions } from "./in-memory-metric-store.ts";
export { MetricRegistry, type CounterRow, type MetricLabels } from "./registry.ts";
export { printSeries } from "./series-exposition.ts";
