/** Metrics that gateways report to the leader: their format, and how they are recorded once. */
export { MetricBatches } from "./metric-batches.ts";
export { metricBatchPath, parseMetricBatch, type MetricBatch, type ReportedSeries } from "./metric-batch.ts";
