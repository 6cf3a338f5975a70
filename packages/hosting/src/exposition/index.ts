/** The platform's and the endpoints' metrics since the start, as Prometheus text. */
export { countedSeries, EndpointCounters } from "./endpoint-counters.ts";
export { createPlatformMetrics, type PlatformMetrics } from "./platform-metrics.ts";
