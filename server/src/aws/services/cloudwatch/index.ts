/** CloudWatch's metrics: `createCloudWatchService({ series, clock })`. */
export { createCloudWatchService, type CloudWatchOptions } from "./cloudwatch-service.ts";
