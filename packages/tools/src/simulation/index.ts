/** What autoscaling would do: the platform's own alarms and policies over a load that is planned or was recorded, on a clock that is moved. */
export { parsePlan, LoadError } from "./load.ts";
export type { MetricSource } from "./metric-feed.ts";
export { readTable } from "./series-table.ts";
export { simulateScaling, type SimulationInput } from "./simulate-scaling.ts";
export { chartText } from "./text-chart.ts";
