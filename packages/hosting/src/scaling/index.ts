/**
 * Application Auto Scaling: how many instances there should be as pure functions (`capacity.ts`), and the book of targets, policies and
 * activities, which alarms set off. What is scaled stands behind `ScalableResources`.
 */
export { stepsFault } from "./capacity.ts";
export type {
  ScalableTarget,
  ScalingActivity,
  ScalingPolicy,
  ScheduledAction,
  StepPolicy,
  TrackingPolicy,
} from "./policy.ts";
export type { ScalingRecord, TargetKey } from "./scaling-record.ts";
export { Scaling, scalingLimits, type ScalableResources } from "./scaling.ts";
export type { ResourceCapacity } from "./wanted-capacity.ts";
export { nextRunMs, ScheduleError } from "./schedule.ts";
