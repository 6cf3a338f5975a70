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
export { createGpuMetrics, type GpuFigures } from "./gpu-metrics.ts";
export { createHostMetrics, type HostMetricsOptions } from "./host-metrics.ts";
export {
  createInferenceMetrics,
  createPinnedMemoryMetrics,
  type InferenceMetrics,
  type InferenceMetricsOptions,
  type ModelLabels,
  type ModelMetrics,
  type ModelMetricsSource,
  type RequestTimes,
} from "./inference-metrics.ts";
export {
  ModelFamilies,
  type FamilyLimits,
  type HeldCells,
  type NamespaceFamilies,
  type TakeCells,
} from "./model-families.ts";
export type { MetricStore } from "./metric-store.ts";
export { MinuteSeries, type MinuteSeriesOptions } from "./minute-series.ts";
export {
  MetricRegistry,
  type CounterRow,
  type Family,
  type GaugeFamily,
  type GaugeRow,
  type HistogramRow,
  type Labels,
} from "./registry.ts";
export { printSeries, type ExpositionLimits } from "./series-exposition.ts";
export type { SeriesTier } from "./series-tiers.ts";
