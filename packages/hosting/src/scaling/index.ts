/**
 * Application Auto Scaling. Pure functions compute the desired capacity (`capacity.ts`). `Scaling` stores targets,
 * policies and activities, and runs policies when alarms change state. `ScalableResources` is the interface to the
 * scaled resources.
 */
export { stepAdjustmentsError } from "./capacity.ts";
export type {
  ScalableTarget,
  ScalingActivity,
  ScalingPolicy,
  ScheduledAction,
  StepPolicy,
  TargetTrackingPolicy,
} from "./policy.ts";
export type { ScalingRecord, TargetKey } from "./scaling-record.ts";
export { Scaling, scalingLimits, type ScalableResources } from "./scaling.ts";
export type { ResourceCapacity } from "./metric-capacity.ts";
export { nextRunMs, ScheduleError } from "./schedule.ts";
