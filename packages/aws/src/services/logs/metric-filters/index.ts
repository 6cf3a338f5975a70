/** Metrics from log events. Loaded by the first filter. */
export { metricFilterOperations } from "./metric-filter-operations.ts";
export type { MetricFilterRecord } from "./metric-filter.ts";
export { MetricFilters, type MetricFiltersOptions } from "./metric-filters.ts";
