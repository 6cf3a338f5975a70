/** CloudWatch's metrics over the platform's own minute series. */
export { cloudwatchService, type CloudWatchParts } from "./service.ts";
