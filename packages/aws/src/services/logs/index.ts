/** CloudWatch Logs over hosting's `LogStreams`. */
export { logsService } from "./service.ts";
export { lazyLogQueries } from "./lazy-log-queries.ts";
export { GroupFilters, openMetricFilterStore } from "./group-filters.ts";
