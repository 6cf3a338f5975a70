/** CloudWatch Logs Insights over a `LogStore`. Loaded by the first operation on queries. */
export { LogQueries, type LogQueriesOptions } from "./log-queries.ts";
export { queryOperations } from "./query-operations.ts";
