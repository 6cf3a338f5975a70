import type { EvaluatedMetric } from "../alarms/index.ts";
import type { Schedule } from "./schedule.ts";

/** A scaled resource and dimension, such as the number of instances of `endpoint/<name>/variant/<name>`. */
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

/** A policy that keeps a metric near a target value. */
export interface TargetTrackingPolicy extends PolicyBase {
  readonly type: "TargetTrackingScaling";
  readonly targetValue: number;
  /** The metric. Its period is one minute, or ten seconds for some predefined metrics. */
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
  /** Bounds of the metric's distance from the alarm's threshold; null: unbounded. */
  readonly lower: number | null;
  readonly upper: number | null;
  readonly adjustment: number;
}

export type AdjustmentType = "ChangeInCapacity" | "PercentChangeInCapacity" | "ExactCapacity";

/** A policy that changes the capacity depending on the distance of a metric from the threshold of a user's alarm. */
export interface StepPolicy extends PolicyBase {
  readonly type: "StepScaling";
  readonly adjustmentType: AdjustmentType;
  readonly steps: readonly StepAdjustment[];
  /** Minimum change of capacity for PercentChangeInCapacity. */
  readonly magnitudeMin: number;
  readonly cooldownMs: number;
  readonly aggregation: "Average" | "Minimum" | "Maximum";
  readonly configuration: object;
}

export type ScalingPolicy = TargetTrackingPolicy | StepPolicy;

/** An action that sets new bounds of a target at scheduled times. */
export interface ScheduledAction extends Schedule {
  readonly name: string;
  readonly arn: string;
  readonly resourceId: string;
  readonly dimension: string;
  /** New minimum; null: unchanged. */
  readonly minCapacity: number | null;
  readonly maxCapacity: number | null;
  /** Epoch time of the last run, including skipped runs; null: never. */
  readonly lastRunMs: number | null;
}

export type NotScaledCode = "AlreadyAtMaxCapacity" | "AlreadyAtMinCapacity" | "AlreadyAtDesiredCapacity";

/** A record of a change of capacity, or of a rejected change. */
export interface ScalingActivity {
  readonly id: string;
  readonly resourceId: string;
  readonly dimension: string;
  readonly description: string;
  readonly cause: string;
  readonly startMs: number;
  /** Epoch time of the end; null while the change is in progress. */
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
