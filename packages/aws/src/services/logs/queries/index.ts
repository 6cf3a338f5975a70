/** CloudWatch Logs Insights over `LogStreams`. Loaded by the first operation on queries. */
export { LogQueries, type LogQueriesOptions } from "./log-queries.ts";
export { queryOperations } from "./query-operations.ts";
