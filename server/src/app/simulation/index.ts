/** What autoscaling would do: the platform's own alarms and policies over a load that is planned or was recorded, on a clock that is moved. */
export { parsePlan, readSeries, type Load, LoadError } from "./load.ts";
export { pageOf } from "./page-chart.ts";
export { simulateScaling, type SimulatedMinute, type Simulation, type SimulationAsked } from "./simulate-scaling.ts";
export { textOf } from "./text-chart.ts";
