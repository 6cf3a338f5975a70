/** CloudWatch's metrics over the platform's own minute series, alarms, and dashboards. */
export { createAlarmValueReader } from "./alarm-values.ts";
export { createTopicActions } from "./alarm-messages.ts";
export { openDashboardStore } from "./dashboards.ts";
export { cloudwatchService } from "./service.ts";
