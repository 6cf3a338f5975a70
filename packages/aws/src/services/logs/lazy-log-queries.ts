import { LazyResource } from "@galatea/base";
import type { LogQueries, LogQueriesOptions } from "./queries/index.ts";

/** The queries of CloudWatch Logs Insights, whose code the first query loads. */
export function lazyLogQueries(options: LogQueriesOptions): LazyResource<LogQueries> {
  return new LazyResource(async () => new (await import("./queries/index.ts")).LogQueries(options));
}
