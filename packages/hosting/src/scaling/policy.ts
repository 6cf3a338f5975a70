import type { Watched } from "../alarms/index.ts";
import type { Schedule } from "./schedule.ts";

/** What is scaled: `endpoint/<name>/variant/<name>` by its number of instances. */
export interface ScalableTarget {
  readonly resourceId: string;
  readonly dimension: string;
  readonly arn: string;
  readonly roleArn: string;
  readonly createdMs: number;
  readonly minCapacity: number;
  readonly maxCapacity: number;
  readonly suspended: Suspended;
  readonly tags: Readonly<Record<string, string>>;
}

export interface Suspended {
  readonly scaleIn: boolean;
  readonly scaleOut: boolean;
  readonly scheduled: boolean;
}

interface PolicyFacts {
  readonly name: string;
  readonly arn: string;
  readonly resourceId: string;
  readonly dimension: string;
  readonly createdMs: number;
}

/** Keeps a metric near a value. */
export interface TrackingPolicy extends PolicyFacts {
  readonly type: "TargetTrackingScaling";
  readonly targetValue: number;
  /** What it follows, over one minute or, of some predefined metrics, ten seconds. */
  readonly watched: Watched;
  /** Whether a minute without datapoints is a minute in which nothing was asked of anybody. */
  readonly isZeroWhenMissing: boolean;
  readonly scaleOutCooldownMs: number;
  readonly scaleInCooldownMs: number;
  readonly isScaleInDisabled: boolean;
  /** As it was given, for descriptions. */
  readonly configuration: object;
  readonly highAlarm: string;
  readonly lowAlarm: string | null;
}

export interface StepAdjustment {
  /** Distance from the alarm's threshold; null: without end. */
  readonly lower: number | null;
  readonly upper: number | null;
  readonly adjustment: number;
}

export type AdjustmentType = "ChangeInCapacity" | "PercentChangeInCapacity" | "ExactCapacity";

/** Changes the capacity by how far an alarm of the user's is beyond its threshold. */
export interface StepPolicy extends PolicyFacts {
  readonly type: "StepScaling";
  readonly adjustmentType: AdjustmentType;
  readonly steps: readonly StepAdjustment[];
  /** Of percentages: at least so many. */
  readonly magnitudeMin: number;
  readonly cooldownMs: number;
  readonly aggregation: "Average" | "Minimum" | "Maximum";
  readonly configuration: object;
}

export type ScalingPolicy = TrackingPolicy | StepPolicy;

/** Other bounds for a target, at the times of a schedule. */
export interface ScheduledAction extends Schedule {
  readonly name: string;
  readonly arn: string;
  readonly resourceId: string;
  readonly dimension: string;
  /** Null: as it is. */
  readonly minCapacity: number | null;
  readonly maxCapacity: number | null;
  /** When it was last run or left out; null: never. */
  readonly lastRunMs: number | null;
}

export type NotScaledCode = "AlreadyAtMaxCapacity" | "AlreadyAtMinCapacity" | "AlreadyAtDesiredCapacity";

/** A change of capacity, or one that was not made. */
export interface ScalingActivity {
  readonly id: string;
  readonly resourceId: string;
  readonly dimension: string;
  readonly description: string;
  readonly cause: string;
  readonly startMs: number;
  /** Null while it is under way. */
  readonly endMs: number | null;
  readonly status: "InProgress" | "Successful" | "Failed" | "Overridden";
  readonly statusMessage: string | null;
  /** Of what was not scaled. */
  readonly notScaled: {
    readonly code: NotScaledCode;
    readonly minCapacity: number;
    readonly maxCapacity: number;
    readonly currentCapacity: number;
  } | null;
}
