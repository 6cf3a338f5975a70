/**
 * Simulation of autoscaling. It runs the platform's own alarms and policies for a planned or recorded load, with a
 * simulated clock.
 */
export { parsePlan, LoadError } from "./load.ts";
export type { MetricSource } from "./metric-feed.ts";
export { readTable } from "./series-table.ts";
export { simulateScaling, type SimulationInput } from "./simulate-scaling.ts";
export { chartText } from "./text-chart.ts";
