/** Prometheus metrics of the platform and of its endpoints. */
export { openCountedSeries, EndpointCounters } from "./endpoint-counters.ts";
export { createPlatformMetrics, type PlatformMetrics } from "./platform-metrics.ts";
