/** The metrics of variants and models, and minute series in the records. */
export { VariantMetrics, type ContainerUseMetric, type InstanceMetric, type OpenSeries } from "./endpoint-metrics.ts";
export {
  MetricRecords,
  metricMigrations,
  metricRecordsLimits,
  type MetricRecordsLimits,
  type MetricRecordsOptions,
} from "./metric-records.ts";
