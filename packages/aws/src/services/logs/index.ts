/** CloudWatch Logs over a `LogStore`; hosting's container logs are such a store. */
export type { LogStore, LogStoreEvent, LogStorePage, LogStoreRead } from "./log-store.ts";
export { logsService, type LogsParts } from "./service.ts";
export { LogQueries } from "./log-queries.ts";
export type { MetricFilterRecord } from "./metric-filter.ts";
export { MetricFilters, type MetricFilterStore } from "./metric-filters.ts";
