/** CloudWatch Logs over hosting's `LogStreams`. */
export { logsService } from "./service.ts";
export { lazyLogQueries } from "./lazy-log-queries.ts";
export type { MetricFilterRecord, MetricFilterStore } from "./metric-filters/index.ts";
export { recordedMetricFilters } from "./recorded-metric-filters.ts";
export { GroupFilters } from "./group-filters.ts";
