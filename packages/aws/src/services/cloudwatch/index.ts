/** CloudWatch's metrics over the platform's own minute series, alarms, and dashboards. */
export { alarmValues } from "./alarm-values.ts";
export { topicActions } from "./alarm-messages.ts";
export { recordedDashboards } from "./dashboards.ts";
export { cloudwatchService } from "./service.ts";
