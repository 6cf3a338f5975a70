/** The CloudWatch metrics of variants, models and inference components: their names, units and dimensions. */
export { VariantMetrics, type ContainerUsageMetric, type InstanceMetric, type OpenSeries } from "./endpoint-metrics.ts";
