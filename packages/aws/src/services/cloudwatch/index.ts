/** CloudWatch: alarms, dashboards, and metrics from the platform's own minute series. */
export { createAlarmValueReader } from "./alarm-values.ts";
export { createTopicActions } from "./alarm-messages.ts";
export { openDashboardStore } from "./dashboards.ts";
export { cloudwatchService } from "./service.ts";
