import type { ScaledBefore } from "./capacity.ts";
import type { ScalableTarget, ScalingActivity, ScalingPolicy, ScheduledAction } from "./policy.ts";

/** A scalable target with its policies, what it last did, and what it has done. */
export interface ScalingRecord {
  readonly target: ScalableTarget;
  readonly policies: readonly ScalingPolicy[];
  readonly scheduled: readonly ScheduledAction[];
  /** Whether the capacity is to go into the bounds that were set last: until it has, or that has failed. */
  readonly correcting: Correction | null;
  readonly lastOut: ScaledBefore | null;
  readonly lastIn: ScaledBefore | null;
  /** Oldest first. */
  readonly activities: readonly ScalingActivity[];
}

export interface Correction {
  /** The scheduled action that set the bounds; null for a person. */
  readonly actionName: string | null;
  /** Null before the change of the capacity has begun. */
  readonly activityId: string | null;
}

export interface TargetKey {
  readonly resourceId: string;
  readonly dimension: string;
}

/** Returns the key by which the record of a target is kept. */
export function keyOf({ resourceId, dimension }: TargetKey): string {
  return `${resourceId} ${dimension}`;
}
