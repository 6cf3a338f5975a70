/** CloudWatch Logs over a `LogStore`; hosting's container logs are such a store. */
export type { LogStore, LogStoreEvent, LogStorePage, LogStoreRead } from "./log-store.ts";
export { logsService, type LogsParts } from "./service.ts";
export { LogQueries } from "./log-queries.ts";
