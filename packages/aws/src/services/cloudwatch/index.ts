/** CloudWatch's metrics over the platform's own minute series, alarms, and dashboards. */
export { alarmValues } from "./alarm-values.ts";
export type { DashboardRecord, DashboardStore } from "./dashboards.ts";
export { cloudwatchService, type CloudWatchParts } from "./service.ts";
