/**
 * CloudWatch Logs Insights' language: `parseQuery` reads a query or says where it is none, `runQuery` runs it over events in a thread of its
 * own. Regular expressions are run in time in proportion to the text (`search-expression.ts`), groups, rows and memory are bounded.
 */
export { QueryTooLarge } from "./aggregation.ts";
export { parseQuery, rowsMax } from "./parse-query.ts";
export { QueryError } from "./query.ts";
export type { QueryEvent } from "./query-record.ts";
export type { QueryResult } from "./query-run.ts";
export { runQuery } from "./query-threads.ts";
