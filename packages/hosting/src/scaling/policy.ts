import type { EvaluatedMetric } from "../alarms/index.ts";
import type { Schedule } from "./schedule.ts";

/** A scaled resource: `endpoint/<name>/variant/<name>` by its number of instances. */
export interface ScalableTarget {
  readonly resourceId: string;
  readonly dimension: string;
  readonly arn: string;
  readonly roleArn: string;
  readonly createdMs: number;
  readonly minCapacity: number;
  readonly maxCapacity: number;
  readonly suspended: SuspendedScaling;
  readonly tags: Readonly<Record<string, string>>;
}

export interface SuspendedScaling {
  readonly scaleIn: boolean;
  readonly scaleOut: boolean;
  readonly scheduled: boolean;
}

interface PolicyBase {
  readonly name: string;
  readonly arn: string;
  readonly resourceId: string;
  readonly dimension: string;
  readonly createdMs: number;
}

/** Keeps a metric near a value. */
export interface TargetTrackingPolicy extends PolicyBase {
  readonly type: "TargetTrackingScaling";
  readonly targetValue: number;
  /** The metric, over periods of one minute or, for some predefined metrics, ten seconds. */
  readonly watched: EvaluatedMetric;
  /** True if a minute without data points counts as a minute without requests. */
  readonly isZeroWhenMissing: boolean;
  readonly scaleOutCooldownMs: number;
  readonly scaleInCooldownMs: number;
  readonly isScaleInDisabled: boolean;
  /** The configuration of the request, for descriptions. */
  readonly configuration: object;
  readonly highAlarm: string;
  readonly lowAlarm: string | null;
}

export interface StepAdjustment {
  /** Distance from the alarm's threshold; null: unbounded. */
  readonly lower: number | null;
  readonly upper: number | null;
  readonly adjustment: number;
}

export type AdjustmentType = "ChangeInCapacity" | "PercentChangeInCapacity" | "ExactCapacity";

/** A policy that changes the capacity by the distance of a user's alarm from its threshold. */
export interface StepPolicy extends PolicyBase {
  readonly type: "StepScaling";
  readonly adjustmentType: AdjustmentType;
  readonly steps: readonly StepAdjustment[];
  /** Minimum change for percentages. */
  readonly magnitudeMin: number;
  readonly cooldownMs: number;
  readonly aggregation: "Average" | "Minimum" | "Maximum";
  readonly configuration: object;
}

export type ScalingPolicy = TargetTrackingPolicy | StepPolicy;

/** New bounds for a target at scheduled times. */
export interface ScheduledAction extends Schedule {
  readonly name: string;
  readonly arn: string;
  readonly resourceId: string;
  readonly dimension: string;
  /** Null: unchanged. */
  readonly minCapacity: number | null;
  readonly maxCapacity: number | null;
  /** Time of the last run or skipped run; null: never. */
  readonly lastRunMs: number | null;
}

export type NotScaledCode = "AlreadyAtMaxCapacity" | "AlreadyAtMinCapacity" | "AlreadyAtDesiredCapacity";

/** A change of capacity, or one that was rejected. */
export interface ScalingActivity {
  readonly id: string;
  readonly resourceId: string;
  readonly dimension: string;
  readonly description: string;
  readonly cause: string;
  readonly startMs: number;
  /** Null while it is in progress. */
  readonly endMs: number | null;
  readonly status: "InProgress" | "Successful" | "Failed" | "Overridden";
  readonly statusMessage: string | null;
  /** Present for a rejected change. */
  readonly notScaled: {
    readonly code: NotScaledCode;
    readonly minCapacity: number;
    readonly maxCapacity: number;
    readonly currentCapacity: number;
  } | null;
}
