/**
 * Application Auto Scaling: the desired capacity as pure functions (`capacity.ts`), and `Scaling`, which stores
 * targets, policies and activities, and runs policies for alarms. `ScalableResources` is the interface to the scaled
 * resources.
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
