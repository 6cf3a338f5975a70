/** CloudWatch Logs: `createLogsService({ store, clock })`; hosting's container logs are such a store. */
export type { LogStore, LogStoreEvent, LogStorePage, LogStoreRead } from "./log-store.ts";
export { createLogsService, type LogsOptions } from "./logs-service.ts";
