/** CloudWatch Logs Insights over `LogStreams`. The first query operation loads this module. */
export { LogQueries, type LogQueriesOptions } from "./log-queries.ts";
export { queryOperations } from "./query-operations.ts";
