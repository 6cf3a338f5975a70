/** Metrics from log events. The first metric filter loads this module. */
export { metricFilterOperations } from "./metric-filter-operations.ts";
export type { MetricFilterRecord } from "./metric-filter.ts";
export { MetricFilters, type MetricFiltersOptions } from "./metric-filters.ts";
