/** The metrics of variants, models and components: their names, units and dimensions. */
export { VariantMetrics, type ContainerUseMetric, type InstanceMetric, type OpenSeries } from "./endpoint-metrics.ts";
