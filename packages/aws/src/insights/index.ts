/**
 * CloudWatch Logs Insights' query language. `parseQuery` parses a query or reports the position of an error; `runQuery`
 * runs it over events in a thread of its own. Regular expressions take time proportional to the text
 * (`search-expression.ts`); groups, rows and memory are limited.
 */
export { QueryLimitExceeded } from "./aggregation.ts";
export { parseQuery, queryRowsMax } from "./parse-query.ts";
export { QueryError } from "./query.ts";
export type { QueryEvent } from "./query-record.ts";
export type { QueryResult } from "./query-run.ts";
export { runQuery } from "./query-threads.ts";
